/** What a database needs to be used after it was restored from a copy that lacks the last commits. */
import { skipTo } from './event-rows/heads.ts';
import { appendEvents } from './event-rows/write.ts';
import { setMeta } from './meta.ts';
import type { Writer } from './store.ts';

const GAP = 'the service was restored from a backup; events since then are not in it';

/**
 * Lets a log continue after `skip_to_seq`, so that no number is assigned twice, and records that with a `log_gap`. Does
 * nothing if the log is longer.
 */
export async function skipNumbers(
  writer: Writer,
  log: { agent_num: number; last_seq: number },
  skip_to_seq: number,
  now_ms: number,
): Promise<void> {
  if (skip_to_seq <= log.last_seq) return;
  await skipTo(writer, log.agent_num, skip_to_seq);
  const data = JSON.stringify({ code: 'log_gap', error: GAP, from: log.last_seq + 1, to: skip_to_seq });
  const gap = { ts_ms: now_ms, type: 'error', data } as const;
  const no_output = { session_id: null, stream: null, offset: null, partial: false };
  await appendEvents(writer, log.agent_num, [{ ...gap, ...no_output }]);
}

/** Begins a new incarnation of the plane, which nodes prefer to the one before the restore. */
export async function recordRestore(writer: Writer, now_ms: number): Promise<void> {
  await setMeta(writer, 'restored_at_ms', String(now_ms));
}
