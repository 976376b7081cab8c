/** Spools: how much of each stream of a session is committed. */
import type { Selectable } from 'kysely';
import { type StreamName, streamNames } from '../../core/event.ts';
import { preparedInsert, preparedQuery } from '../prepared-query.ts';
import { type Reader, StaleBatch, type Writer } from '../store.ts';
import type { Tables } from '../tables.ts';
import { streamNumber } from './numbers.ts';

export type SpoolRow = Selectable<Tables['spools']>;

const spoolsBySession = preparedQuery((sql, session_num: number) =>
  sql.selectFrom('spools').selectAll().where('session_num', '=', session_num),
);

/** Both spools of a session. The session must exist. */
export async function spoolsOf(reader: Reader, session_num: number): Promise<Record<StreamName, SpoolRow>> {
  const rows = await reader.all(spoolsBySession(reader, session_num));
  const pick = (stream: StreamName) => rows.find((row) => row.stream === streamNumber(stream))!;
  return { stdout: pick('stdout'), stderr: pick('stderr') };
}

/** The end of the output that resulted from the committed bytes of a stream, in bytes. */
export function outputEnd({ output, offset }: Pick<SpoolRow, 'output' | 'offset'>): number {
  return output ?? offset;
}

const newSpool = preparedInsert('spools');

/** Creates both spools of a new session, at offset 0. */
export async function createSpools(writer: Writer, session_num: number): Promise<void> {
  for (const stream of streamNames.map(streamNumber)) {
    const row = { session_num, stream, offset: 0, tail: new Uint8Array() };
    await writer.run(newSpool(writer, row));
  }
}

/**
 * Records that the spool file lost bytes: its beginning now corresponds to the stream's committed offset. Throws `StaleBatch`
 * if that is not `offset`.
 */
export async function rebaseSpool(
  writer: Writer,
  session_num: number,
  stream: StreamName,
  offset: number,
): Promise<void> {
  const rebased = await writer.run(
    writer.sql
      .updateTable('spools')
      .set({ base: offset, tail: new Uint8Array() })
      .where('session_num', '=', session_num)
      .where('stream', '=', streamNumber(stream))
      .where('offset', '=', offset),
  );
  if (rebased.changes !== 1) throw new StaleBatch();
}

export interface SpoolMove {
  /** Must be the committed offset. */
  from: number;
  to: number;
  /** The last ≤ 64 bytes before `to`. */
  tail: Uint8Array;
  /** Bytes of output up to `to`. */
  output: number;
}

const move = preparedQuery(
  (
    sql,
    session_num: number,
    stream: number,
    from: number,
    to: number,
    tail: Uint8Array,
    output: number | null,
  ) =>
    sql
      .updateTable('spools')
      .set({ offset: to, tail, output })
      .where('session_num', '=', session_num)
      .where('stream', '=', stream)
      .where('offset', '=', from),
);

/** Moves a committed offset. Throws `StaleBatch` if the offset is not `from`. */
export async function advanceSpool(
  writer: Writer,
  session_num: number,
  stream: StreamName,
  { from, to, tail, output }: SpoolMove,
): Promise<void> {
  const kept = output === to ? null : output;
  const moved = await writer.run(move(writer, session_num, streamNumber(stream), from, to, tail, kept));
  if (moved.changes !== 1) throw new StaleBatch();
}
