/**
 * The events of a run as a resumable stream. Each event contains the record of the run or a step after a change. Events are
 * kept as long as the run, so a client misses events only if the database was restored from a backup.
 */
import type { Clock } from '../../base/clock.ts';
import { followRows, type RowSource } from '../../events/follow-rows.ts';
import type { Position } from '../../events/position.ts';
import type { Store } from '../../store/store.ts';
import { lastRunEvent, runEventsAfter } from './queries/events.ts';
import { findRun } from './queries/runs.ts';

export interface RunEventsOptions {
  store: Store;
  clock: Clock;
  heartbeat_ms?: number;
}

export class RunEvents {
  readonly #options: RunEventsOptions;

  constructor(options: RunEventsOptions) {
    this.#options = options;
  }

  /**
   * Yields encoded SSE frames: all events, or those after `position`, followed by new ones. The stream does not end with the
   * run.
   */
  async *follow(run_id: string, position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { store, clock, heartbeat_ms } = this.#options;
    const num = await store.read(async (reader) => (await findRun(reader, run_id))?.num ?? 0);
    const source: RowSource = {
      clock,
      ...(heartbeat_ms !== undefined && { heartbeat_ms }),
      head: () => store.read((reader) => lastRunEvent(reader, num)),
      settled: () => store.settledNumbers('run_events'),
      read: (after, up_to) =>
        store.read(async (reader) =>
          (await runEventsAfter(reader, num, after, up_to)).map(({ id, ts, type, data }) => ({
            id,
            type,
            ts_ms: ts,
            record: data,
          })),
        ),
      onNew: (wake) => store.wakes.onKey('run_events', num, wake),
    };
    yield* followRows(source, position, signal);
  }
}
