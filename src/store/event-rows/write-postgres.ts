/**
 * Writes batches of output in PostgreSQL. One statement moves the stream's committed offset, if it is the one at which
 * the batch begins, grows the log, and inserts the events.
 */
import { limits } from '../../base/limits.ts';
import { problems } from '../../core/problem.ts';
import type { WriteTransaction } from '../postgres/transaction.ts';
import { type Appended, type IngestBatch, StaleBatch } from '../store.ts';
import { BINARY, PARTIAL, streamNumber, typeNumber } from './numbers.ts';

/**
 * Parameters: 1 session id, 2 stream, 3 from, 4 to, 5 tail, 6 length of the output or null, 7 number of events, 8 bytes
 * that the log grows, 9 time, 10 the events' bytes, 11 where the output begins, 12 beginnings, 13 lengths, 14 flags.
 */
const INSERT = `
  WITH moved AS (
    UPDATE spools SET "offset" = $4, tail = $5, output = $6
    FROM sessions, heads
    WHERE sessions.id = $1 AND session_num = sessions.num AND stream = $2 AND "offset" = $3
      AND heads.agent_num = sessions.agent_num
    RETURNING session_num, sessions.agent_num
  ), grown AS (
    UPDATE heads SET last_seq = last_seq + $7, bytes = bytes + $8
    FROM moved WHERE heads.agent_num = moved.agent_num
    RETURNING heads.agent_num, last_seq, session_num
  ), inserted AS (
    INSERT INTO events (agent_num, seq, ts, type, session_num, stream, "offset", flags, data)
    SELECT agent_num, last_seq - $7 + number, $9, ${typeNumber('output')}, session_num, $2, $11 + start, flags,
      substr($10::bytea, (start + 1)::int, length::int)
    FROM grown, unnest($12::int8[], $13::int8[], $14::int2[]) WITH ORDINALITY AS e(start, length, flags, number)
  )
  SELECT agent_num, last_seq FROM grown`;

/** `error`: why the batch was not stored. */
export type BatchOutcome = { appended: Appended } | { error: unknown };

/**
 * Never throws `StaleBatch` or `session not found`, because that would roll back the other batches of the transaction.
 */
export async function writeBatch(tx: WriteTransaction, batch: IngestBatch): Promise<BatchOutcome> {
  const { session_id, from, to, tail, ts_ms, bytes, ends, partial, is_text, output_from = from } = batch;
  const events = ends.length;
  const starts = ends.map((_, i) => ends[i - 1] ?? 0);
  const log_bytes = bytes.length + events * limits.event_row_bytes;
  const output = output_from + bytes.length;
  const row = await tx.first<{ agent_num: number; last_seq: number }>(INSERT, [
    ...[session_id, streamNumber(batch.stream), from, to, tail, output === to ? null : output],
    ...[events, log_bytes, ts_ms, bytes, output_from],
    ...[starts, ends.map((end, i) => end - starts[i]!)].map(arrayText),
    arrayText(partial.map((is_partial, i) => (is_partial ? PARTIAL : 0) | (is_text[i]! ? 0 : BINARY))),
  ]);
  if (row === undefined) return { error: await rejection(tx, session_id) };
  const { agent_num, last_seq } = row;
  const first_seq = last_seq - events + 1;
  return { appended: { agent_id: batch.agent_id, agent_num, first_seq, last_seq, bytes: log_bytes } };
}

async function rejection(tx: WriteTransaction, session_id: string): Promise<Error> {
  const session = await tx.get(tx.sql.selectFrom('sessions').select('num').where('id', '=', session_id));
  return session === undefined ? problems.sessionNotFound() : new StaleBatch();
}

function arrayText(numbers: readonly number[]): string {
  return `{${numbers.join()}}`;
}
