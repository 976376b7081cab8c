/** The ticks of the timeline's axis: round times, whose labels never touch each other or a folded segment (pure). */
import type { Scale, Segment } from './scale.ts';

const M = 60;
const H = 60 * M;
const steps_s = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, M, 2 * M, 5 * M, 10 * M, 15 * M, 30 * M];
const long_steps_s = [H, 2 * H, 3 * H, 6 * H, 12 * H, 24 * H];
const steps = [...steps_s, ...long_steps_s];
/** Between the label of a tick and the next tick. */
const GAP_PX = 28;
/** Between a tick and its label. */
export const TICK_PAD_PX = 4;

export interface Tick {
  readonly x: number;
  /** Unix seconds. */
  readonly ts: number;
  readonly text: string;
}

export interface TickOptions {
  /** The label of an instant among ticks that are `step_s` seconds apart. */
  readonly format: (ts: number, step_s: number) => string;
  /** The width of a text in pixels. */
  readonly measure: (text: string) => number;
  /** How far local time is ahead of UTC, so that ticks are round in local time. */
  readonly offset_s: number;
}

export function placeTicks({ segments }: Scale, options: TickOptions): Tick[] {
  return segments.flatMap((segment) => (segment.fold ? [] : segmentTicks(segment, options)));
}

function segmentTicks(segment: Segment, { format, measure, offset_s }: TickOptions): Tick[] {
  const { from, to, x, width } = segment;
  const px_per_s = to === from ? 0 : width / (to - from);
  const labelWidth = (step: number) => TICK_PAD_PX + measure(format(from, step));
  const step = steps.find((step) => step * px_per_s >= labelWidth(step) + GAP_PX) ?? steps.at(-1)!;
  const ticks: Tick[] = [];
  const add = (ts: number) => {
    const at = x + (ts - from) * px_per_s;
    const text = format(ts, step);
    if (at + TICK_PAD_PX + measure(text) <= x + width) ticks.push({ x: at, ts, text });
  };
  // In whole steps, because sums of fractions are not exact.
  const first = Math.ceil((from + offset_s) / step);
  const last = Math.floor((to + offset_s) / step);
  for (let n = first; n <= last; n++) add(n * step - offset_s);
  // A segment without a round time shows when it begins.
  if (ticks.length === 0) add(from);
  return ticks;
}
