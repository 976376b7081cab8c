/**
 * Streams numbered rows of the database from the client's position on, then new ones. Each follower reads the rows
 * separately, so use it only for rare events. It does not interpret the rows. No row is skipped if transactions overlap:
 * a row waits until the numbers below it are settled.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { type SettledNumbers, waitAfter } from '../store/settled-numbers.ts';
import { entryFrame } from './feed.ts';
import { connectionError, heartbeatFrame, retryFrame } from './frame.ts';
import { limits } from './limits.ts';
import type { Position } from './position.ts';

export interface NumberedRow {
  id: number;
  type: string;
  ts_ms: number;
  /** JSON. */
  record: string;
}

export interface RowSource {
  clock: Clock;
  heartbeat_ms?: number;
  /** The newest number; 0 if there are no rows. */
  head(): Promise<number>;
  /** Which numbers of the table are settled. */
  settled(): Promise<SettledNumbers>;
  /** The rows from `after` (exclusive) to `up_to`, in order, at most `limits.follow_rows_per_read`. */
  read(after: number, up_to: number): Promise<NumberedRow[]>;
  /** Calls `wake` when there may be more rows; returns a function that unsubscribes. */
  onNew(wake: () => void): () => void;
}

/** Yields SSE frames. A position that was never assigned gets a `reset`, followed by new rows only. */
export async function* followRows(
  source: RowSource,
  position: Position,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { clock, heartbeat_ms = limits.heartbeat_ms } = source;
  const wake = new Wake();
  const stop = source.onNew(() => wake.notify());
  try {
    const { up_to } = await source.settled();
    const head = await source.head();
    yield retryFrame;
    let cursor = typeof position === 'object' && 'after' in position ? position.after : 0;
    if (cursor > head) {
      cursor = Math.min(head, up_to);
      const error = 'unknown position; reload the list';
      yield connectionError(cursor, clock.now(), { code: 'reset', error, head: cursor });
    }
    let heartbeat_at = performance.now() + heartbeat_ms;
    while (!signal.aborted) {
      if (performance.now() >= heartbeat_at) {
        heartbeat_at = performance.now() + heartbeat_ms;
        yield heartbeatFrame(cursor, clock.now());
      }
      const settled = await source.settled();
      const rows = await source.read(cursor, settled.up_to);
      if (rows.length === 0) {
        await wake.wait(waitAfter(settled, heartbeat_at - performance.now()), signal);
        continue;
      }
      cursor = rows.at(-1)!.id;
      yield Buffer.concat(rows.map(({ id, type, ts_ms, record }) => entryFrame(id, ts_ms, type, record)));
    }
  } finally {
    stop();
  }
}
