/** One measured row of `npm run bench`, and what is wanted of it. */
export interface Figure {
  what: string;
  unit: string;
  value: number;
  /** What the machine can do at all, measured in the same run, in the same unit. */
  limit?: number;
  limit_is?: string;
  goal?: Goal;
}

/** A bound on the value itself, or on the value's share of the limit. */
export interface Goal {
  of: 'value' | 'ratio';
  at_least?: number;
  at_most?: number;
}

export interface RowOptions {
  /** Fewer and shorter rounds: shows that the row works, and little about the machine. */
  quick: boolean;
}

export interface Row {
  /** As on the command line. */
  name: string;
  /** How it is measured, for the reader of the figures. */
  how: string;
  /** Why, as far as it is known, the row falls short of its goals where it does. */
  bottleneck?: string;
  run(options: RowOptions): Promise<Figure[]>;
}

export interface Measured {
  row: Row;
  figures: readonly Figure[];
}

export const MB = 1_000_000;

export function ratioOf({ value, limit }: Figure): number | null {
  return limit === undefined ? null : value / limit;
}

/** Null where nothing is wanted. */
export function isShort(figure: Figure): boolean | null {
  const { goal } = figure;
  if (!goal) return null;
  const measured = goal.of === 'value' ? figure.value : (ratioOf(figure) ?? Number.NaN);
  return !(measured >= (goal.at_least ?? -Infinity) && measured <= (goal.at_most ?? Infinity));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The smallest that so many percent of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)]!;
}
