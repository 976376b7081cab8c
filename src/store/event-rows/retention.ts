/** Finds old rows of events and deletes them. Status events stay as long as their agent exists. */
import { limits } from '../../base/limits.ts';
import { preparedQuery } from '../prepared-query.ts';
import type { Reader, Writer } from '../store.ts';
import { typeNumber } from './numbers.ts';

const STATUS = typeNumber('status');

/** An event that can be deleted. `bytes`: its contribution to the log's size. */
export interface OldEvent {
  seq: number;
  ts_ms: number;
  bytes: number;
}

/** An agent's oldest events from `seq` on, at most `limit`. */
export async function oldestEvents(
  reader: Reader,
  agent_num: number,
  seq: number,
  limit: number,
): Promise<OldEvent[]> {
  const rows = await reader.all(
    reader.sql
      .selectFrom('events')
      .select((eb) => ['seq', 'ts', eb.fn<number>('length', ['data']).as('length')])
      .where('agent_num', '=', agent_num)
      .where('seq', '>=', seq)
      .where('type', '<>', STATUS)
      .orderBy('seq')
      .limit(limit),
  );
  return rows.map(({ seq, ts, length }) => ({ seq, ts_ms: ts, bytes: length + limits.event_row_bytes }));
}

/** Returns which of these agents have no segments and an oldest event from before `before_ms` (Unix milliseconds). */
export async function unsealedBefore(
  reader: Reader,
  agent_nums: readonly number[],
  before_ms: number,
): Promise<number[]> {
  const found = await reader.all(
    reader.sql
      .selectFrom('heads')
      .select('agent_num')
      .where('agent_num', 'in', agent_nums)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('segments')
              .select('segments.id')
              .whereRef('segments.agent_num', '=', 'heads.agent_num'),
          ),
        ),
      )
      .where(
        ({ selectFrom }) =>
          selectFrom('events')
            .select('ts')
            .whereRef('events.agent_num', '=', 'heads.agent_num')
            .whereRef('seq', '>=', 'heads.first_seq')
            .where('type', '<>', STATUS)
            .orderBy('seq')
            .limit(1),
        '<',
        before_ms,
      ),
  );
  return found.map(({ agent_num }) => agent_num);
}

const newestEvent = preparedQuery((sql, agent_num: number) =>
  sql.selectFrom('events').select('ts').where('agent_num', '=', agent_num).orderBy('seq', 'desc').limit(1),
);

/** When the newest event that is stored as a row was written (Unix milliseconds); 0 if there is none. */
export async function newestTs(reader: Reader, agent_num: number): Promise<number> {
  return (await reader.get(newestEvent(reader, agent_num)))?.ts ?? 0;
}

/** Deletes the rows with numbers `from` to `to` (inclusive), except status events. */
export async function deleteEvents(
  writer: Writer,
  agent_num: number,
  from: number,
  to: number,
): Promise<void> {
  await writer.run(rowsBetween(writer, agent_num, from, to).where('type', '<>', STATUS));
}

/** Deletes all rows with numbers `from` to `to` (inclusive), for a deleted agent. */
export async function deleteAllEvents(
  writer: Writer,
  agent_num: number,
  from: number,
  to: number,
): Promise<void> {
  await writer.run(rowsBetween(writer, agent_num, from, to));
}

function rowsBetween(writer: Writer, agent_num: number, from: number, to: number) {
  return writer.sql
    .deleteFrom('events')
    .where('agent_num', '=', agent_num)
    .where('seq', '>=', from)
    .where('seq', '<=', to);
}
