/** Where the bars of a lane are, and where their labels: inside, or beside where no other bar is (pure). */
import type { TimedEntry } from './entries.ts';
import type { Scale } from './scale.ts';

export const LABEL_PAD_PX = 6;
const MIN_BAR_PX = 6;
/** Between what is in the same row. */
const GAP_PX = 4;
/** The most that a label beside its bar takes. */
const BESIDE_MAX_PX = 260;
/** Labels beside bars make no more rows than these; further ones have none, so that hundreds of calls stay compact. */
const LABELED_ROWS = 6;

export interface Label {
  readonly text: string;
  readonly side: 'inside' | 'after' | 'before';
}

export interface PlacedBar {
  readonly entry: TimedEntry;
  /** In pixels. */
  readonly x: number;
  readonly width: number;
  readonly row: number;
  /** Null: there is no room. */
  readonly label: Label | null;
}

/** `entries`: by their start. `measure`: the width of a text in pixels. */
export function placeBars(
  entries: readonly TimedEntry[],
  scale: Scale,
  measure: (text: string) => number,
): PlacedBar[] {
  const rows = new Rows();
  return entries.map((entry) => {
    const x = scale.at(entry.from);
    const width = Math.max(MIN_BAR_PX, scale.at(entry.to) - x);
    const text = barText(entry);
    const inside = fitLabel(text, width - 2 * LABEL_PAD_PX, measure);
    if (inside !== text) {
      const beside = placeBeside(text, { x, width }, scale, measure);
      const row = beside && rows.take(beside.from, beside.to, LABELED_ROWS);
      if (beside && row !== null) return { entry, x, width, row, label: beside.label };
    }
    const label: Label | null = inside === null ? null : { text: inside, side: 'inside' };
    return { entry, x, width, row: rows.take(x, x + width)!, label };
  });
}

/** The label after the bar, else before it, and the space of both together; null if neither has room. */
function placeBeside(
  text: string,
  { x, width }: { x: number; width: number },
  scale: Scale,
  measure: (text: string) => number,
): { label: Label; from: number; to: number } | null {
  const shown = fitLabel(text, BESIDE_MAX_PX, measure);
  if (shown === null) return null;
  const taken = measure(shown) + LABEL_PAD_PX;
  const end = x + width;
  if (end + taken <= scale.width) return { label: { text: shown, side: 'after' }, from: x, to: end + taken };
  return x >= taken ? { label: { text: shown, side: 'before' }, from: x - taken, to: end } : null;
}

/** The rows of a lane, each free from some position on. */
class Rows {
  readonly #free: number[] = [];

  /** The first row that is free there, or a new one; null if that would be more rows than `limit`. */
  take(from: number, to: number, limit = Number.POSITIVE_INFINITY): number | null {
    const found = this.#free.findIndex((x) => x <= from);
    const row = found === -1 ? this.#free.length : found;
    if (row >= limit) return null;
    this.#free[row] = to + GAP_PX;
    return row;
  }
}

export function countRows(bars: readonly PlacedBar[]): number {
  return bars.reduce((most, { row }) => Math.max(most, row + 1), 0);
}

function barText({ label, result }: TimedEntry): string {
  return result?.status === 'failed' ? `✕ ${label}` : label;
}

/** The text if it fits, else as many of its words as fit, then `…`; null if not even one does. Paths break at slashes. */
export function fitLabel(text: string, width: number, measure: (text: string) => number): string | null {
  if (measure(text) <= width) return text;
  const breaks = [...text.matchAll(/\s+|\/(?=.)/g)].map(({ index, 0: mark }) =>
    mark === '/' ? index + 1 : index,
  );
  const cut = breaks.findLast((at) => at > 0 && measure(`${text.slice(0, at)}…`) <= width);
  return cut === undefined ? null : `${text.slice(0, cut)}…`;
}
