/**
 * A run as rows of spans, one row per step. Long idle periods are folded, so that a night does not squeeze an hour of work into a
 * corner. Pure.
 */
export interface Span {
  /**
   * `waiting`: for a person. `earlier`: attempts before the current one: they worked, may have waited for an answer, and may have
   * failed. The record of the step does not say how long each took.
   */
  kind: 'queued' | 'earlier' | 'working' | 'waiting';
  from_ms: number;
  to_ms: number;
}

export interface Row {
  member_id: string;
  /** Null: what the member waited for outside its steps. */
  step_key: string | null;
  status: string;
  spans: Span[];
}

export interface Tick {
  /** A fraction of the width, 0 to 1. */
  at: number;
  ms: number;
}

/** A folded period. */
export interface Fold {
  from_ms: number;
  to_ms: number;
  /** Where it begins, and its width, as fractions of the width of all. */
  at: number;
  width: number;
  /** It has room for its length as text. */
  is_labeled: boolean;
}

export interface Scale {
  /** The position of an instant, as a fraction of the width. */
  x(ms: number): number;
  folds: Fold[];
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
/** The width of a folded gap without a label. */
const MARK_WIDTH = 0.04;
/** The most of the width that folded gaps with labels may take together. */
const FOLDS_WIDTH_MAX = 0.4;

/** Widths as fractions of the width of all. */
export interface ScaleOptions {
  /** The least distance between ticks, which have labels of `2m14s`. */
  tick_distance: number;
  /** A folded gap with its length. */
  fold_width: number;
}

/** The labels of ticks need about 40 px, those of folds about 60, and the bars have at least 360. */
const DESK: ScaleOptions = { tick_distance: 0.12, fold_width: 0.17 };

export function createScale(
  spans: readonly Pick<Span, 'from_ms' | 'to_ms'>[],
  start_ms: number,
  end_ms: number,
  { tick_distance, fold_width }: ScaleOptions = DESK,
): Scale {
  const last = Math.max(end_ms, start_ms + 1000);
  const busy = union(spans, start_ms, last);
  const busy_ms = busy.reduce((sum, [from, to]) => sum + to - from, 0);
  const pieces: Piece[] = [];
  const put = (from_ms: number, to_ms: number, idle: boolean) => {
    if (to_ms <= from_ms) return;
    // Without busy time, the only gap is all that there is to show.
    const folded = idle && busy_ms > 0 && to_ms - from_ms > Math.max(FOLD_MIN_MS, busy_ms * FOLD_MIN_SHARE);
    pieces.push({ from_ms, to_ms, folded, width: folded ? 0 : to_ms - from_ms });
  };
  let at = start_ms;
  for (const [from, to] of busy) {
    put(at, from, true);
    put(from, to, false);
    at = to;
  }
  put(at, last, true);
  const count = pieces.filter(({ folded }) => folded).length;
  const is_labeled = count * fold_width <= FOLDS_WIDTH_MAX;
  const folded_width = is_labeled ? fold_width : Math.min(MARK_WIDTH, FOLDS_WIDTH_MAX / count);
  const shown = pieces.reduce((sum, { width }) => sum + width, 0) || 1;
  const total = shown / (1 - count * folded_width);
  for (const piece of pieces) if (piece.folded) piece.width = total * folded_width;

  const x = (ms: number) => {
    let before = 0;
    for (const { from_ms, to_ms, width } of pieces) {
      if (ms <= to_ms)
        return Math.min(1, (before + (width * Math.max(0, ms - from_ms)) / (to_ms - from_ms)) / total);
      before += width;
    }
    return 1;
  };
  const folds = pieces
    .filter(({ folded }) => folded)
    .map(({ from_ms, to_ms }) => ({ from_ms, to_ms, at: x(from_ms), width: folded_width, is_labeled }));
  return { x, folds, ticks: buildTicks(pieces, x, tick_distance) };
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

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const intervals = [S, 2 * S, 5 * S, 10 * S, 30 * S, M, 2 * M, 5 * M, 10 * M, 30 * M, H, 2 * H, 6 * H, 24 * H];
const TICKS_MAX = 6;

/** Ticks at round times since the start, outside the folded gaps, with a minimum distance from each other and before a gap. */
function buildTicks(pieces: readonly Piece[], x: (ms: number) => number, distance: number): Tick[] {
  const start_ms = pieces[0]?.from_ms ?? 0;
  const shown_ms = pieces.reduce(
    (sum, { folded, from_ms, to_ms }) => sum + (folded ? 0 : to_ms - from_ms),
    0,
  );
  const every =
    intervals.find((interval) => shown_ms / interval <= TICKS_MAX) ?? Math.ceil(shown_ms / TICKS_MAX);
  const ticks: Tick[] = [];
  for (const [index, { from_ms, to_ms, folded }] of pieces.entries()) {
    if (folded) continue;
    const fold = pieces.slice(index).find((piece) => piece.folded);
    const room_end = fold ? x(fold.from_ms) : Infinity;
    for (let n = Math.ceil((from_ms - start_ms) / every); start_ms + n * every <= to_ms; n++) {
      const ms = start_ms + n * every;
      const at = x(ms);
      if (ticks.length === 0 || (at - ticks.at(-1)!.at > distance && room_end - at > distance))
        ticks.push({ at, ms });
    }
  }
  return ticks;
}

interface TimedStep {
  step_key: string;
  member_id: string;
  depends_on: readonly string[];
  status: string;
  attempt: number;
  started_at: string | null;
  ended_at: string | null;
  waiting_since: string | null;
  answered_by: string | null;
}
/** A request of a member. */
export interface TimedWait {
  member_id: string;
  since: string;
  open: boolean;
  settled_at: string | null;
}

/**
 * The rows of a run: the current attempt of each step, by member. A step is queued from the end of its dependencies to its
 * start, unless it had an attempt before the current one. A member's waits for answers are in the row of the step that
 * it was working on, else in a row of their own.
 */
export function buildRows(
  members: readonly string[],
  steps: readonly TimedStep[],
  waits: readonly TimedWait[],
  { start_ms, now_ms }: { start_ms: number; now_ms: number },
): Row[] {
  const ended = new Map(steps.map(({ step_key, ended_at }) => [step_key, ended_at]));
  const rows = steps.flatMap((step): Row[] => {
    const { step_key, member_id, status, depends_on, attempt, answered_by } = step;
    const begun = time(step.started_at);
    const asked = time(step.waiting_since);
    const end = time(step.ended_at);
    const free = depends_on.reduce(
      (last, key) => Math.max(last, time(ended.get(key) ?? null) ?? 0),
      start_ms,
    );
    const spans: Span[] = [];
    const until = begun ?? asked ?? (status === 'ready' ? now_ms : free);
    // An answered attempt that was not followed by another was completed or failed by the answer, or continues.
    const has_earlier = attempt > 1 || (answered_by !== null && begun === null);
    if (until > free) spans.push({ kind: has_earlier ? 'earlier' : 'queued', from_ms: free, to_ms: until });
    if (begun !== null) spans.push({ kind: 'working', from_ms: begun, to_ms: end ?? now_ms });
    if (asked !== null) spans.push({ kind: 'waiting', from_ms: asked, to_ms: end ?? now_ms });
    return spans.length === 0 ? [] : [{ member_id, step_key, status, spans }];
  });
  for (const { member_id, since, open, settled_at } of waits) {
    const to = time(settled_at);
    // For an unanswered request, the end of the wait is unknown.
    if (to === null && !open) continue;
    const span: Span = { kind: 'waiting', from_ms: Date.parse(since), to_ms: to ?? now_ms };
    const own = rows.filter((row) => row.member_id === member_id);
    const row = own.find(({ spans }) =>
      spans.some((work) => work.kind === 'working' && contains(work, span)),
    );
    const other = row ?? own.find(({ step_key }) => step_key === null);
    if (!other)
      rows.push({ member_id, step_key: null, status: open ? 'needs_you' : 'completed', spans: [span] });
    else {
      other.spans.push(span);
      if (open && other.step_key === null) other.status = 'needs_you';
    }
  }
  const order = new Map(members.map((member_id, at) => [member_id, at]));
  const begin = ({ spans }: Row) => Math.min(...spans.map(({ from_ms }) => from_ms));
  return rows.sort(
    (a, b) =>
      (order.get(a.member_id) ?? order.size) - (order.get(b.member_id) ?? order.size) || begin(a) - begin(b),
  );
}

function contains(outer: Span, inner: Span): boolean {
  return outer.from_ms <= inner.from_ms && inner.from_ms <= outer.to_ms;
}

function time(at: string | null): number | null {
  return at === null ? null : Date.parse(at);
}
