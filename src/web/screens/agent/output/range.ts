/** Ranges of lines, as in addresses: `L200`, `L200-L240`. */

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Parses a fragment or the user's input; null if it is not a range of lines. */
export function parseRange(text: string): Range | null {
  const found = /^\s*#?L?(\d{1,9})(?:\s*[-–]\s*L?(\d{1,9}))?\s*$/i.exec(text);
  if (!found) return null;
  const a = Number(found[1]);
  const b = found[2] === undefined ? a : Number(found[2]);
  const range = { from: Math.min(a, b), to: Math.max(a, b) };
  return range.from < 1 ? null : range;
}

export function formatRange({ from, to }: Range): string {
  return from === to ? `L${from}` : `L${from}-L${to}`;
}

/** Extends a range to another line. */
export function reaching(range: Range | null, n: number): Range {
  if (!range) return { from: n, to: n };
  return n < range.from ? { from: n, to: range.to } : { from: range.from, to: n };
}

export function includesLine(range: Range | null, n: number): boolean {
  return range !== null && n >= range.from && n <= range.to;
}
