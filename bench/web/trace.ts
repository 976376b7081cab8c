/** The work of a page's main thread, according to the browser's trace. */
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
 * The work in milliseconds for each mark with this name: the sum of all tasks after the previous mark, up to the task that set
 * the mark, in the thread that set it.
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
  // Work before the task of the first mark has other causes too.
  let at = tasks.findIndex((task) => task.ts + task.dur! >= first.ts);
  for (const { ts } of marks) {
    let spent_us = 0;
    for (; at < tasks.length && tasks[at]!.ts <= ts; at++) spent_us += tasks[at]!.dur!;
    // Several marks in one task count as one change.
    if (spent_us > 0) work.push(spent_us / 1000);
  }
  return work;
}
