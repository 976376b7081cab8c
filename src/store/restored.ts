/** What a database needs to be used after it was restored from a copy that lacks the last commits. */
import { skipTo } from './event-rows/heads.ts';
import { appendEvents } from './event-rows/write.ts';
import { setMeta } from './meta.ts';
import type { Writer } from './store.ts';

const GAP = 'the service was restored from a backup; events since then are not in it';

/**
 * Lets a log continue after `skip_to_seq`, so that no number is assigned twice, and records that with a `log_gap`, which says
 * `why`. Does nothing if the log is longer.
 */
export async function skipNumbers(
  writer: Writer,
  log: { agent_num: number; last_seq: number },
  skip_to_seq: number,
  now_ms: number,
  why = GAP,
): Promise<void> {
  if (skip_to_seq <= log.last_seq) return;
  await skipTo(writer, log.agent_num, skip_to_seq);
  const data = JSON.stringify({ code: 'log_gap', error: why, from: log.last_seq + 1, to: skip_to_seq });
  const gap = { ts_ms: now_ms, type: 'error', data } as const;
  const no_output = { session_id: null, stream: null, offset: null, partial: false };
  await appendEvents(writer, log.agent_num, [{ ...gap, ...no_output }]);
}

/** The key of `meta` for the number of the newest deleted entry of the fleet feed. A client at a lower position has missed entries. */
export const FEED_TRIMMED_KEY = 'feed_trimmed';

/** Tables whose numbers clients know as positions in streams. */
export const streamed_tables = ['feed', 'run_events', 'messages'] as const;

/**
 * Lets the numbers of streams continue far above those that clients may know, so that nobody at such a position misses what comes
 * after the restore. Followers of the fleet feed get a reset, so they read everything again. `advance` moves the numbers of a table ahead,
 * and returns the last one.
 */
export async function skipStreamNumbers(
  writer: Writer,
  advance: (table: (typeof streamed_tables)[number]) => Promise<number>,
): Promise<void> {
  for (const table of streamed_tables) {
    const last = await advance(table);
    if (table === 'feed') await setMeta(writer, FEED_TRIMMED_KEY, String(last));
  }
  await writer.run(writer.sql.deleteFrom('feed'));
}

/** Begins a new incarnation of the plane, which nodes prefer to the one before the restore. */
export async function recordRestore(writer: Writer, now_ms: number): Promise<void> {
  await setMeta(writer, 'restored_at_ms', String(now_ms));
}
