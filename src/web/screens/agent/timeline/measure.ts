/** Widths of texts in the font of the timeline, without a layout of the page. */

const FONT = '450 11px "Inter Variable", system-ui, sans-serif';
/** The font may arrive after the first layout, and is a little wider than the one before it. */
const SLACK = 1.04;

let context: CanvasRenderingContext2D | null = null;

/** In pixels, for `text-xs`. */
export function measureText(text: string): number {
  context ??= document.createElement('canvas').getContext('2d');
  if (!context) return text.length * 7;
  context.font = FONT;
  return Math.ceil(context.measureText(text).width * SLACK);
}
