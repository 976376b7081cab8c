/**
 * What happened to a run, as a stream that can be resumed: its record and its steps' as they were after each change. The
 * log of a run is kept as long as the run, so the only hole is one that a restored database tells of.
 */
import type { Clock } from '../../base/clock.ts';
import { followRows, type RowSource } from '../../events/follow-rows.ts';
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
    const { store, clock, progress, heartbeat_ms } = this.#options;
    const num = await store.read((reader) => findRun(reader, run_id)?.num ?? 0);
    const source: RowSource = {
      clock,
      ...(heartbeat_ms !== undefined && { heartbeat_ms }),
      head: () => store.read((reader) => lastRunEvent(reader, num)),
      after: (cursor) =>
        store.read((reader) =>
          runEventsAfter(reader, num, cursor).map(({ id, ts, type, data }) => ({
            id,
            type,
            ts_ms: ts,
            record: data,
          })),
        ),
      onNew: (wake) => progress.onEvent((run_num) => run_num === num && wake()),
    };
    yield* followRows(source, position, signal);
  }
}
