/**
 * Writes events. No other module inserts rows of events. The rows, the log's head and, for output from a spool, the
 * stream's committed offset change in one transaction.
 */
import { limits } from '../../base/limits.ts';
import type { EventType, StreamName } from '../../core/event.ts';
import { problems } from '../../core/problem.ts';
import { preparedQuery } from '../prepared-query.ts';
import type { Appended, IngestBatch, Writer } from '../store.ts';
import { allocateSeqs } from './heads.ts';
import { BINARY, PARTIAL, streamNumber, typeNumber } from './numbers.ts';
import type { EventContent } from './read.ts';
import { advanceSpool } from './spools.ts';

/** An event to append. */
export interface NewEvent extends EventContent {
  /** The position in the stream's output; null for other events. */
  offset: number | null;
}

/** The numbers of the appended events, and by how many bytes the log grew. */
export interface LogGrowth {
  first_seq: number;
  last_seq: number;
  bytes: number;
}

interface Row {
  ts_ms: number;
  type: EventType;
  session_num: number | null;
  stream: StreamName | null;
  offset: number | null;
  flags: number | null;
  data: Uint8Array;
}

/** The statement for one row. `insertRows` passes its parameters in this order. */
const insertion = preparedQuery((sql) =>
  sql.insertInto('events').values({
    ...{ agent_num: 0, seq: 0, ts: 0, type: 0 },
    ...{ session_num: 0, stream: 0, offset: 0, flags: 0, data: new Uint8Array() },
  }),
);

/** The size of an event in the log: its data, and an estimate for the rest of its row. */
function rowBytes(data_bytes: number): number {
  return data_bytes + limits.event_row_bytes;
}

async function insertRows(writer: Writer, agent_num: number, rows: readonly Row[]): Promise<LogGrowth> {
  const bytes = rows.reduce((sum, { data }) => sum + rowBytes(data.length), 0);
  const last_seq = await allocateSeqs(writer, agent_num, rows.length, bytes);
  const first_seq = last_seq - rows.length + 1;
  const sets = rows.map((row, i) => [
    agent_num,
    first_seq + i,
    row.ts_ms,
    typeNumber(row.type),
    row.session_num,
    row.stream === null ? null : streamNumber(row.stream),
    row.offset,
    row.flags,
    row.data,
  ]);
  await writer.runEach(insertion(writer), sets);
  return { first_seq, last_seq, bytes };
}

/**
 * Appends events to an agent's log, in the caller's transaction. Throws `agent not found` or `session not found` if the
 * log or a session of an event does not exist.
 */
export async function appendEvents(
  writer: Writer,
  agent_num: number,
  events: readonly NewEvent[],
): Promise<LogGrowth> {
  const numOf = sessionNums(writer);
  const rows: Row[] = [];
  for (const event of events) {
    const { ts_ms, type, session_id, stream, offset, data } = event;
    rows.push({
      ts_ms,
      type,
      session_num: session_id === null ? null : await numOf(session_id),
      stream,
      offset,
      flags: type === 'output' ? flagsOf(event.partial, typeof data === 'string') : null,
      data: typeof data === 'string' ? Buffer.from(data) : data,
    });
  }
  return insertRows(writer, agent_num, rows);
}

function flagsOf(partial: boolean, is_text: boolean): number {
  return (partial ? PARTIAL : 0) | (is_text ? 0 : BINARY);
}

const sessionById = preparedQuery((sql, id: string) =>
  sql.selectFrom('sessions').select(['num', 'agent_num']).where('id', '=', id),
);

/** Caches lookups, because consecutive events mostly belong to one session. */
function sessionNums(writer: Writer): (session_id: string) => Promise<number> {
  const known = new Map<string, number>();
  return async (session_id) => {
    let num = known.get(session_id);
    if (num === undefined) {
      num = (await writer.get(sessionById(writer, session_id)))?.num;
      if (num === undefined) throw problems.sessionNotFound();
      known.set(session_id, num);
    }
    return num;
  };
}

/** Writes batches of output on one connection. Every check is part of a statement, so only numbers are cached. */
export class BatchWriter {
  /** Numbers of sessions and their agents, by the session's id. */
  readonly #sessions = new Map<string, { num: number; agent_num: number }>();

  /** Must be called after any rollback, because the numbers of rolled-back rows are assigned again. */
  forget(): void {
    this.#sessions.clear();
  }

  /** Throws `StaleBatch` if the batch does not begin at the committed offset, or `session not found`. */
  async write(writer: Writer, batch: IngestBatch): Promise<Appended> {
    const { num, agent_num } = await this.#session(writer, batch.session_id);
    const { ts_ms, stream, bytes, ends, partial, is_text, output_from = batch.from } = batch;
    await advanceSpool(writer, num, stream, { ...batch, output: output_from + bytes.length });
    const rows = ends.map((end, i): Row => {
      const from = ends[i - 1] ?? 0;
      return {
        ts_ms,
        type: 'output',
        session_num: num,
        stream,
        offset: output_from + from,
        flags: flagsOf(partial[i]!, is_text[i]!),
        data: bytes.subarray(from, end),
      };
    });
    const grown = await insertRows(writer, agent_num, rows);
    return { agent_id: batch.agent_id, agent_num, ...grown };
  }

  async #session(writer: Writer, session_id: string): Promise<{ num: number; agent_num: number }> {
    let found = this.#sessions.get(session_id);
    if (!found) {
      found = await writer.get(sessionById(writer, session_id));
      if (!found) throw problems.sessionNotFound();
      if (this.#sessions.size >= limits.sessions_cached_max) this.#sessions.clear();
      this.#sessions.set(session_id, found);
    }
    return found;
  }
}
