/** What a page's own thread worked, as the browser's trace tells it. */
export interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds. */
  ts: number;
  dur?: number;
}

export const TRACED = ['disabled-by-default-devtools.timeline', 'blink.user_timing'];

/**
 * Milliseconds of work for each mark of this name: of all tasks after the mark before up to the one that it was left in. The
 * thread is the one that left the marks.
 */
export function workBetween(events: readonly TraceEvent[], mark: string): number[] {
  const marks = events.filter(({ name }) => name === mark).sort((a, b) => a.ts - b.ts);
  const [first] = marks;
  if (!first) return [];
  const tasks = events
    .filter(
      ({ name, ph, pid, tid, dur }) =>
        name === 'RunTask' && ph === 'X' && pid === first.pid && tid === first.tid && dur !== undefined,
    )
    .sort((a, b) => a.ts - b.ts);
  const work: number[] = [];
  // What came before the first one is not its work alone.
  let at = tasks.findIndex((task) => task.ts + task.dur! >= first.ts);
  for (const { ts } of marks) {
    let spent_us = 0;
    for (; at < tasks.length && tasks[at]!.ts <= ts; at++) spent_us += tasks[at]!.dur!;
    // Several marks in one task are one change.
    if (spent_us > 0) work.push(spent_us / 1000);
  }
  return work;
}
