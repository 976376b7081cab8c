/**
 * What happened to a run, as a stream that can be resumed: its record and its steps' as they were after each change. The
 * log of a run is kept as long as the run, so the only hole is one that a restored database tells of.
 */
import { Wake } from '../../base/async.ts';
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import { entryFrame } from '../../events/feed.ts';
import { connectionError, heartbeatFrame, retryFrame } from '../../events/frame.ts';
import type { Position } from '../../events/position.ts';
import { findRun, lastRunEvent, runEventsAfter } from '../../store/runs.ts';
import type { Store } from '../../store/store.ts';
import type { Progress } from './progress.ts';

export interface RunEventsOptions {
  store: Store;
  clock: Clock;
  progress: Progress;
  heartbeat_ms?: number;
}

export class RunEvents {
  readonly #options: RunEventsOptions;

  constructor(options: RunEventsOptions) {
    this.#options = options;
  }

  /** Ready SSE frames: all of them, or those after `position`, and then live, also when the run is over. */
  async *follow(run_id: string, position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { store, clock, progress, heartbeat_ms = limits.heartbeat_ms } = this.#options;
    const wake = new Wake();
    const { num, head } = await store.read((reader) => {
      const run = findRun(reader, run_id);
      return run ? { num: run.num, head: lastRunEvent(reader, run.num) } : { num: 0, head: 0 };
    });
    const deaf = progress.onEvent((run_num) => run_num === num && wake.notify());
    try {
      yield retryFrame;
      let cursor = typeof position === 'object' && 'after' in position ? position.after : 0;
      if (cursor > head) {
        cursor = head;
        const error = 'this run has not come so far; load it again';
        yield connectionError(cursor, clock.now(), { code: 'reset', error, head: cursor });
      }
      let heartbeat_at = performance.now() + heartbeat_ms;
      while (!signal.aborted) {
        if (performance.now() >= heartbeat_at) {
          heartbeat_at = performance.now() + heartbeat_ms;
          yield heartbeatFrame(cursor, clock.now());
        }
        const after = cursor;
        const events = await store.read((reader) => runEventsAfter(reader, num, after));
        if (events.length === 0) {
          await wake.wait(heartbeat_at - performance.now(), signal);
          continue;
        }
        cursor = events.at(-1)!.id;
        yield Buffer.concat(events.map(({ id, ts, type, data }) => entryFrame(id, ts, type, data)));
      }
    } finally {
      deaf();
    }
  }
}
