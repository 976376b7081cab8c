/** The colors of a line of output. Apart from `ansi.ts`, because conversations show output without colors. */
import Anser from 'anser';
import { COLORS, colorsAfter, lastWritten, SEQUENCE, semicolons } from './ansi.ts';
import { bounds } from './bounds.ts';
import { escapeSpecial, isPlainText } from './escape.ts';

export interface Span {
  readonly text: string;
  /** A name (`red`, `bright-red`) for the theme, or `#rrggbb`; null for the default. */
  readonly fg: string | null;
  readonly bg: string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly strike: boolean;
  /** It is the rest of a line that changes its color too often, and has no colors. */
  readonly is_rest?: true;
}

const COLOR = /^(?:\x1b\[|\x9b)([\d;:]*)m$/;

/** `carry`: the colors that are on at the start of the line. */
export function parseSpans(raw: string, carry = ''): Span[] {
  if (carry === '' && isPlainText(raw)) return raw === '' ? [] : [plain(raw)];
  const { before, text } = lastWritten(raw);
  const end = colorsEnd(text);
  const colored = colorsAfter(carry, before) + text.slice(0, end).replace(SEQUENCE, colorOnly);
  const spans = Anser.ansiToJson(colored, { json: true, use_classes: true, remove_empty: true }).map(toSpan);
  const rest = escapeSpecial(text.slice(end).replace(SEQUENCE, ''));
  return rest === '' ? spans : [...spans, { ...plain(rest), is_rest: true }];
}

/** Where a line has had its colors. */
function colorsEnd(text: string): number {
  let count = 0;
  for (const { index } of text.matchAll(COLORS)) if (count++ === bounds.line_colors) return index;
  return text.length;
}

function colorOnly(sequence: string): string {
  const codes = COLOR.exec(sequence)?.[1];
  return codes === undefined ? '' : `\x1b[${semicolons(codes)}m`;
}

function plain(text: string): Span {
  const usual = {
    fg: null,
    bg: null,
    bold: false,
    dim: false,
    italic: false,
    underline: false,
    strike: false,
  };
  return { text, ...usual };
}

function toSpan(entry: Anser.AnserJsonEntry): Span {
  const { content, fg, bg, fg_truecolor, bg_truecolor, decorations } = entry;
  return {
    text: escapeSpecial(content),
    fg: toColor(fg, fg_truecolor),
    bg: toColor(bg, bg_truecolor),
    bold: decorations.includes('bold'),
    dim: decorations.includes('dim'),
    italic: decorations.includes('italic'),
    underline: decorations.includes('underline'),
    strike: decorations.includes('strikethrough'),
  };
}

/** The library has names for 16 colors, numbers for 240 more, and `r, g, b` for all others. */
function toColor(name: string | null, rgb: string | null): string | null {
  if (name === null) return null;
  if (name === 'ansi-truecolor') return rgb === null ? null : hex(rgb.split(',').map(Number));
  const palette = /^ansi-palette-(\d+)$/.exec(name)?.[1];
  return palette === undefined ? name.replace(/^ansi-/, '') : hex(paletteColor(Number(palette)));
}

/** The palette of xterm: a cube of 6 × 6 × 6 colors from 16 on, grays from 232 on. */
function paletteColor(index: number): number[] {
  if (index >= 232) return Array<number>(3).fill(8 + 10 * (index - 232));
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = index - 16;
  return [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level);
}

function hex(rgb: number[]): string {
  return `#${rgb.map((level) => level.toString(16).padStart(2, '0')).join('')}`;
}
