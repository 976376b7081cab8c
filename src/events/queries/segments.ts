/** Queries about segments, which replace ranges of rows, and about logs of deleted agents. */
import type { Insertable, Selectable } from 'kysely';
import { agentsOfShare, type LogShare } from '../../store/event-rows/heads.ts';
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import type { SegmentName } from '../segment.ts';

/** The columns that readers of a segment need. */
export type SegmentRow = Pick<
  Selectable<Tables['segments']>,
  'id' | 'agent_num' | 'first_seq' | 'last_seq' | 'path' | 'blocks'
>;

function selectSegments({ sql }: Pick<Reader, 'sql'>, agent_num: number) {
  return sql
    .selectFrom('segments')
    .select(['id', 'agent_num', 'first_seq', 'last_seq', 'path', 'blocks'])
    .where('agent_num', '=', agent_num);
}

const firstAfter = preparedQuery((sql, agent_num: number, seq: number) =>
  selectSegments({ sql }, agent_num).where('last_seq', '>', seq).orderBy('last_seq').limit(1),
);

/** The first segment with events after a number. */
export function segmentAfter(
  reader: Reader,
  agent_num: number,
  seq: number,
): Promise<SegmentRow | undefined> {
  return reader.get(firstAfter(reader, agent_num, seq));
}

/** The last segment with events before a number. */
export function segmentBefore(
  reader: Reader,
  agent_num: number,
  seq: number,
): Promise<SegmentRow | undefined> {
  return reader.get(
    selectSegments(reader, agent_num).where('first_seq', '<', seq).orderBy('first_seq', 'desc').limit(1),
  );
}

/** The segments that contain any of these numbers. */
export async function segmentsContaining(
  reader: Reader,
  agent_num: number,
  seqs: readonly number[],
): Promise<SegmentRow[]> {
  const near = await reader.all(
    reader.sql
      .selectFrom('segments')
      .select(['id', 'first_seq', 'last_seq'])
      .where('agent_num', '=', agent_num)
      .where('last_seq', '>=', Math.min(...seqs))
      .where('first_seq', '<=', Math.max(...seqs)),
  );
  const ids = near
    .filter(({ first_seq, last_seq }) => seqs.some((seq) => first_seq <= seq && seq <= last_seq))
    .map(({ id }) => id);
  return ids.length === 0 ? [] : reader.all(selectSegments(reader, agent_num).where('id', 'in', ids));
}

/** The paths of all segments. */
export async function segmentPaths(reader: Reader): Promise<string[]> {
  return (await reader.all(reader.sql.selectFrom('segments').select('path'))).map(({ path }) => path);
}

/** Ids of the segments whose rows have not all been deleted. */
export async function unsweptSegments(reader: Reader): Promise<number[]> {
  const segments = reader.sql.selectFrom('segments').select('id').where('swept', '=', 0);
  return (await reader.all(segments)).map(({ id }) => id);
}

/** The id of the segment with these blocks; undefined if it is not recorded. */
export async function segmentNamed(
  reader: Reader,
  { agent_num, path }: SegmentName,
): Promise<number | undefined> {
  const segments = reader.sql.selectFrom('segments').select('id').where('agent_num', '=', agent_num);
  return (await reader.get(segments.where('path', '=', path)))?.id;
}

/** The range of a segment; undefined if it no longer exists. */
export function rangeOf(reader: Reader, id: number) {
  return reader.get(
    reader.sql.selectFrom('segments').select(['agent_num', 'first_seq', 'last_seq']).where('id', '=', id),
  );
}

const sizeOfSegments = preparedQuery((sql, agent_num: number) =>
  sql
    .selectFrom('segments')
    .select((eb) => [eb.fn.sum<number | null>('bytes').as('bytes'), eb.fn.max('last_seq').as('last_seq')])
    .where('agent_num', '=', agent_num),
);

/** Bytes of an agent's segments, and the number of the last sealed event; 0 without segments. */
export async function sealedSize(
  reader: Reader,
  agent_num: number,
): Promise<{ bytes: number; last_seq: number }> {
  const sealed = await reader.get(sizeOfSegments(reader, agent_num));
  return { bytes: sealed?.bytes ?? 0, last_seq: sealed?.last_seq ?? 0 };
}

/** The id of an agent's oldest segment. */
export async function oldestSegmentOf(reader: Reader, agent_num: number): Promise<number | undefined> {
  const segments = reader.sql.selectFrom('segments').select('id').where('agent_num', '=', agent_num);
  return (await reader.get(segments.orderBy('first_seq').limit(1)))?.id;
}

/** Ids of a share's segments, without those in `except`, by the time of their newest event, oldest first; at most `limit`. */
export async function oldestSegmentsOf(
  reader: Reader,
  share: LogShare,
  except: readonly number[],
  limit: number,
): Promise<number[]> {
  const segments = reader.sql
    .selectFrom('segments')
    .select('id')
    .where('agent_num', 'in', agentsOfShare(reader, share))
    .orderBy('last_ts')
    .limit(limit);
  const oldest = except.length > 0 ? segments.where('id', 'not in', except) : segments;
  return (await reader.all(oldest)).map(({ id }) => id);
}

/** Ids of the segments whose newest event is from before a time (Unix milliseconds), oldest first. */
export async function segmentsOlderThan(reader: Reader, before_ms: number): Promise<number[]> {
  const segments = reader.sql.selectFrom('segments').select('id').where('last_ts', '<', before_ms);
  return (await reader.all(segments.orderBy('last_ts'))).map(({ id }) => id);
}

/** Returns the segment's id. */
export async function insertSegment(tx: Tx, row: Insertable<Tables['segments']>): Promise<number> {
  return (await tx.get(tx.sql.insertInto('segments').values(row).returning('id')))!.id;
}

/** Records that the rows replaced by the segment have been deleted. */
export async function markSwept(tx: Tx, id: number): Promise<void> {
  await tx.run(tx.sql.updateTable('segments').set({ swept: 1 }).where('id', '=', id));
}

/** Deletes a segment's row and returns its content; undefined if it no longer exists. */
export function deleteSegment(tx: Tx, id: number) {
  return tx.get(
    tx.sql.deleteFrom('segments').where('id', '=', id).returning(['agent_num', 'last_seq', 'bytes', 'path']),
  );
}

export async function deleteSegmentsOf(tx: Tx, agent_num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('segments').where('agent_num', '=', agent_num));
}

/** Marks the log of a deleted agent for cleaning up. */
export async function insertDrop(tx: Tx, agent_num: number): Promise<void> {
  await tx.run(tx.sql.insertInto('log_drops').values({ agent_num }));
}

/** Numbers of deleted agents whose rows or files may still exist. */
export async function listDrops(reader: Reader): Promise<number[]> {
  return (await reader.all(reader.sql.selectFrom('log_drops').select('agent_num'))).map(
    (row) => row.agent_num,
  );
}

export async function deleteDrop(tx: Tx, agent_num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('log_drops').where('agent_num', '=', agent_num));
}
