/** The time axis of the timeline, with long idle times folded (pure). */
import type { Entry } from './entries.ts';

export const IDLE_S = 30;
/** The width of a folded segment, and the minimum of any other. */
const FOLD_PX = 40;
const LEAST_PX = 8;

export interface Segment {
  readonly from: number;
  readonly to: number;
  readonly folded: boolean;
  readonly x: number;
  readonly width: number;
}

export interface Scale {
  readonly segments: readonly Segment[];
  readonly width: number;
  /** The position of an instant, in pixels. */
  readonly at: (ts: number) => number;
}

/** `moments`: times of activity without a bar, such as messages. */
export function createScale(entries: readonly Entry[], moments: readonly number[], width: number): Scale {
  const parts = splitParts(entries, moments);
  const folds = parts.filter(({ folded }) => folded).length;
  const busy_s = parts.reduce((sum, { folded, from, to }) => sum + (folded ? 0 : to - from), 0);
  const room = Math.max(width - folds * FOLD_PX, (parts.length - folds) * LEAST_PX);
  const segments: Segment[] = [];
  let x = 0;
  for (const part of parts) {
    const share = busy_s === 0 ? room : ((part.to - part.from) / busy_s) * room;
    const own = part.folded ? FOLD_PX : Math.max(LEAST_PX, share);
    segments.push({ ...part, x, width: own });
    x += own;
  }
  return { segments, width: x, at: (ts) => position(segments, ts) };
}

function position(segments: readonly Segment[], ts: number): number {
  const segment = segments.find(({ to }) => ts <= to) ?? segments.at(-1);
  if (!segment) return 0;
  const { from, to, x, width } = segment;
  const share = to === from ? 0 : (ts - from) / (to - from);
  return x + Math.min(1, Math.max(0, share)) * width;
}

type Part = Pick<Segment, 'from' | 'to' | 'folded'>;

function splitParts(entries: readonly Entry[], moments: readonly number[]): Part[] {
  // Sessions, turns and waits last without any activity, so they do not count as busy.
  const has_more = entries.some(({ lane }) => lane === 'turns' || lane === 'tools');
  const works = entries.filter(({ lane }) => lane === 'tools' || (lane === 'sessions' && !has_more));
  const busy = merged(works.map(({ from, to }) => ({ from, to })));
  // A tool that waits for an answer is idle.
  const waits = merged(entries.filter(({ lane }) => lane === 'waits'));
  const points = [...new Set([...entries.flatMap(({ from, to }) => [from, to]), ...moments])].sort(
    (a, b) => a - b,
  );
  const parts: Part[] = [];
  for (const [at, to] of points.entries()) {
    const from = points[at - 1];
    if (from === undefined) continue;
    const folded = to - from > IDLE_S && (!isWithin(busy, from, to) || isWithin(waits, from, to));
    const last = parts.at(-1);
    if (last && !last.folded && !folded) parts[parts.length - 1] = { ...last, to };
    else parts.push({ from, to, folded });
  }
  return parts.length > 0 || points.length === 0
    ? parts
    : [{ from: points[0]!, to: points[0]!, folded: false }];
}

interface Interval {
  readonly from: number;
  readonly to: number;
}

function merged(intervals: readonly Interval[]): Interval[] {
  const all: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last && next.from <= last.to)
      all[all.length - 1] = { from: last.from, to: Math.max(last.to, next.to) };
    else all.push(next);
  }
  return all;
}

function isWithin(intervals: readonly Interval[], from: number, to: number): boolean {
  return intervals.some((each) => each.from <= from && each.to >= to);
}

/** The row of each bar; overlapping bars are in different rows. */
export function assignRows(bars: readonly { x: number; width: number }[]): number[] {
  const ends: number[] = [];
  return bars.map(({ x, width }) => {
    const free = ends.findIndex((end) => end <= x);
    const row = free === -1 ? ends.length : free;
    ends[row] = x + width;
    return row;
  });
}
