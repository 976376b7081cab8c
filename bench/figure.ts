/** One measurement of `npm run bench`, and its goal. */
export interface Figure {
  what: string;
  unit: string;
  value: number;
  /** The limit of the machine, measured in the same run and in the same unit. */
  limit?: number;
  limit_is?: string;
  goal?: Goal;
}

/** A bound for the value, or for its ratio to the limit. */
export interface Goal {
  of: 'value' | 'ratio';
  at_least?: number;
  at_most?: number;
}

export const atMost = (value: number): Goal => ({ of: 'value', at_most: value });
export const atLeast = (value: number): Goal => ({ of: 'value', at_least: value });
export const ratioAtMost = (ratio: number): Goal => ({ of: 'ratio', at_most: ratio });
export const ratioAtLeast = (ratio: number): Goal => ({ of: 'ratio', at_least: ratio });

export interface RowOptions {
  /** Fewer and shorter rounds, to check that the row works. The results say little about performance. */
  quick: boolean;
}

export interface Row {
  /** Its name on the command line. */
  name: string;
  /** How it is measured, for readers of the figures. */
  how: string;
  /** The known reason why the row misses its goals, if it does. */
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

/** Whether it misses its goal; null without a goal. */
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

/** The smallest value that `percent` percent of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)]!;
}
