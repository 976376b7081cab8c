/** The time axis of the timeline, with long times without activity folded (pure). */
import type { TimedEntry } from './entries.ts';

export const IDLE_S = 30;
/** The minimum width of a segment that is not folded. */
const LEAST_PX = 8;
/** Widths of folded segments: with room for how long it lasted and why, for how long only, and for a mark only. */
export const foldWidths = { full: 104, short: 64, mark: 24 };
/** The most of the width that folded segments may take together, if a narrower kind exists. */
const FOLDS_SHARE = 0.35;

/** Why nothing happened: the agent was idle, or waited for a person. */
export type Fold = 'idle' | 'waiting';

export interface Segment {
  /** Unix seconds. */
  readonly from: number;
  readonly to: number;
  /** Null: it is to scale. */
  readonly fold: Fold | null;
  /** In pixels. */
  readonly x: number;
  readonly width: number;
}

export interface Scale {
  readonly segments: readonly Segment[];
  readonly width: number;
  /** The position of an instant, in pixels. */
  readonly at: (ts: number) => number;
  /** The segment at a position, and the instant. Null without segments. */
  readonly find: (x: number) => { segment: Segment; ts: number } | null;
}

/** `moments`: times of activity without a bar, such as messages. */
export function createScale(
  entries: readonly TimedEntry[],
  moments: readonly number[],
  width: number,
): Scale {
  const parts = splitParts(entries, moments);
  const folds = parts.filter(({ fold }) => fold !== null).length;
  const fold_px = foldWidth(folds, width);
  const busy_s = parts.reduce((sum, { fold, from, to }) => sum + (fold ? 0 : to - from), 0);
  const room = Math.max(width - folds * fold_px, (parts.length - folds) * LEAST_PX);
  const segments: Segment[] = [];
  let x = 0;
  for (const part of parts) {
    const share = busy_s === 0 ? room : ((part.to - part.from) / busy_s) * room;
    const own = part.fold ? fold_px : Math.max(LEAST_PX, share);
    segments.push({ ...part, x, width: own });
    x += own;
  }
  return { segments, width: x, at: (ts) => position(segments, ts), find: (x) => findInstant(segments, x) };
}

function foldWidth(folds: number, width: number): number {
  const { full, short, mark } = foldWidths;
  return [full, short].find((px) => folds * px <= width * FOLDS_SHARE) ?? mark;
}

function position(segments: readonly Segment[], ts: number): number {
  const segment = segments.find(({ to }) => ts <= to) ?? segments.at(-1);
  if (!segment) return 0;
  const { from, to, x, width } = segment;
  const share = to === from ? 0 : (ts - from) / (to - from);
  return x + clamp(share) * width;
}

function findInstant(segments: readonly Segment[], at: number) {
  const segment = segments.find(({ x, width }) => at <= x + width) ?? segments.at(-1);
  if (!segment) return null;
  const { from, to, x, width } = segment;
  return { segment, ts: from + clamp((at - x) / width) * (to - from) };
}

function clamp(share: number): number {
  return Math.min(1, Math.max(0, share));
}

type Part = Pick<Segment, 'from' | 'to' | 'fold'>;

function splitParts(entries: readonly TimedEntry[], moments: readonly number[]): Part[] {
  // Sessions, turns and waits last without any activity, so they do not count as busy.
  const has_more = entries.some(({ lane }) => lane === 'turns' || lane === 'tools');
  const works = entries.filter(({ lane }) => lane === 'tools' || (lane === 'sessions' && !has_more));
  const busy = merged(works.map(({ from, to }) => ({ from, to })));
  const waits = merged(entries.filter(({ lane }) => lane === 'waits'));
  const points = [...new Set([...entries.flatMap(({ from, to }) => [from, to]), ...moments])].sort(
    (a, b) => a - b,
  );
  const parts: Part[] = [];
  for (const [at, to] of points.entries()) {
    const from = points[at - 1];
    if (from === undefined) continue;
    const fold = findFold(from, to, busy, waits);
    const last = parts.at(-1);
    if (last && !last.fold && !fold) parts[parts.length - 1] = { ...last, to };
    else parts.push({ from, to, fold });
  }
  return parts.length > 0 || points.length === 0 ? parts : [{ from: points[0]!, to: points[0]!, fold: null }];
}

function findFold(
  from: number,
  to: number,
  busy: readonly Interval[],
  waits: readonly Interval[],
): Fold | null {
  if (to - from <= IDLE_S) return null;
  // A tool that waits for an answer does nothing either.
  if (isWithin(waits, from, to)) return 'waiting';
  return isWithin(busy, from, to) ? null : 'idle';
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
