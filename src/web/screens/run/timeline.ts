/**
 * A run as lanes of spans, one lane per member. Long idle periods are folded, so that a night does not squeeze an hour of work
 * into a corner. Pure.
 */
export interface Span {
  lane: string;
  key: string;
  kind: 'step' | 'wait';
  status: string;
  from_ms: number;
  to_ms: number;
}

export interface Tick {
  /** A fraction of the width, 0 to 1. */
  at: number;
  ms: number;
}

export interface Scale {
  /** The position of an instant, as a fraction of the width. */
  x(ms: number): number;
  folds: { at: number; from_ms: number; to_ms: number }[];
  ticks: Tick[];
}

interface Piece {
  from_ms: number;
  to_ms: number;
  /** Relative to the sum of all widths. */
  width: number;
  folded: boolean;
}

/** A gap is folded if it is longer than this time, and than this share of the busy time. */
const FOLD_MIN_MS = 60_000;
const FOLD_MIN_SHARE = 0.2;
/** Width of a folded gap, as a share of the width of the rest. */
const FOLDED_WIDTH_SHARE = 0.04;

export function createScale(
  spans: readonly Pick<Span, 'from_ms' | 'to_ms'>[],
  start_ms: number,
  end_ms: number,
): Scale {
  const last = Math.max(end_ms, start_ms + 1000);
  const busy = union(spans, start_ms, last);
  const busy_ms = busy.reduce((sum, [from, to]) => sum + to - from, 0);
  const pieces: Piece[] = [];
  const put = (from_ms: number, to_ms: number, idle: boolean) => {
    if (to_ms <= from_ms) return;
    const folded = idle && to_ms - from_ms > Math.max(FOLD_MIN_MS, busy_ms * FOLD_MIN_SHARE);
    pieces.push({ from_ms, to_ms, folded, width: folded ? 0 : to_ms - from_ms });
  };
  let at = start_ms;
  for (const [from, to] of busy) {
    put(at, from, true);
    put(from, to, false);
    at = to;
  }
  put(at, last, true);
  const shown = pieces.reduce((sum, { width }) => sum + width, 0) || 1;
  for (const piece of pieces) if (piece.folded) piece.width = shown * FOLDED_WIDTH_SHARE;
  const total = pieces.reduce((sum, { width }) => sum + width, 0) || 1;

  const x = (ms: number) => {
    let before = 0;
    for (const { from_ms, to_ms, width } of pieces) {
      if (ms <= to_ms) return (before + (width * Math.max(0, ms - from_ms)) / (to_ms - from_ms)) / total;
      before += width;
    }
    return 1;
  };
  const folds = pieces
    .filter(({ folded }) => folded)
    .map(({ from_ms, to_ms }) => ({ at: (x(from_ms) + x(to_ms)) / 2, from_ms, to_ms }));
  return { x, folds, ticks: buildTicks(pieces, x) };
}

/** The busy intervals, in order and without overlaps. */
function union(
  spans: readonly Pick<Span, 'from_ms' | 'to_ms'>[],
  start_ms: number,
  end_ms: number,
): [number, number][] {
  const sorted = spans
    .map(({ from_ms, to_ms }): [number, number] => [
      Math.max(start_ms, from_ms),
      Math.min(end_ms, Math.max(to_ms, from_ms)),
    ])
    .filter(([from, to]) => to >= from)
    .sort((a, b) => a[0] - b[0]);
  const merged: [number, number][] = [];
  for (const [from, to] of sorted) {
    const open = merged.at(-1);
    if (open && from <= open[1]) open[1] = Math.max(open[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** Ticks at the beginning and at the end of each folded gap, with a minimum distance. */
function buildTicks(pieces: readonly Piece[], x: (ms: number) => number): Tick[] {
  const ticks: Tick[] = [];
  for (const [index, { from_ms, to_ms, folded }] of pieces.entries()) {
    const ms = index === 0 && !folded ? from_ms : folded ? to_ms : null;
    if (ms === null) continue;
    const at = x(ms);
    if (at < 0.85 && (ticks.length === 0 || at - ticks.at(-1)!.at > 0.2)) ticks.push({ at, ms });
  }
  return ticks;
}

interface TimedStep {
  step_key: string;
  member_id: string;
  status: string;
  started_at: string | null;
  ended_at: string | null;
}
interface TimedReview {
  id: string;
  origin_actor_id: string | null;
  created_at: string;
  answered_at: string | null;
  status: string;
}

/** Spans for the current attempt of each step, and for the wait of each review. */
export function buildSpans(
  steps: readonly TimedStep[],
  reviews: readonly TimedReview[],
  now_ms: number,
): Span[] {
  const spans: Span[] = [];
  for (const { step_key, member_id, status, started_at, ended_at } of steps) {
    if (started_at === null) continue;
    spans.push({
      lane: member_id,
      key: step_key,
      kind: 'step',
      status,
      from_ms: Date.parse(started_at),
      to_ms: ended_at === null ? now_ms : Date.parse(ended_at),
    });
  }
  for (const { id, origin_actor_id, created_at, answered_at, status } of reviews) {
    if (origin_actor_id === null) continue;
    // For an unanswered review, the end of the wait is unknown.
    if (answered_at === null && status !== 'pending') continue;
    spans.push({
      lane: origin_actor_id.replace(/@[^@]*$/, ''),
      key: id,
      kind: 'wait',
      status,
      from_ms: Date.parse(created_at),
      to_ms: answered_at === null ? now_ms : Date.parse(answered_at),
    });
  }
  return spans;
}

/** Distributes the spans of a lane over rows, so that none overlap. */
export function assignRows(spans: readonly Span[]): Span[][] {
  const rows: Span[][] = [];
  for (const span of [...spans].sort((a, b) => a.from_ms - b.from_ms)) {
    const free = rows.find((row) => row.at(-1)!.to_ms <= span.from_ms);
    if (free) free.push(span);
    else rows.push([span]);
  }
  return rows;
}
