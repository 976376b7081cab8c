/** Reads events from rows. */
import { sql } from 'kysely';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { EventType, StreamName } from '../../core/event.ts';
import { isPostgres } from '../dialects.ts';
import { limits } from '../limits.ts';
import { preparedQuery } from '../prepared-query.ts';
import type { Reader } from '../store.ts';
import { BINARY, PARTIAL, streamName, streamNumber, typeName, typeNumber } from './numbers.ts';

/** An event without its number. */
export interface EventContent {
  ts_ms: number;
  type: EventType;
  session_id: string | null;
  /** Null if it is not output. */
  stream: StreamName | null;
  /** Output whose line continues in the next event. */
  partial: boolean;
  /** Output as text, or as bytes if it is not UTF-8. Otherwise the additional fields of the frame, as a JSON object. */
  data: string | Uint8Array;
}

export interface StoredEvent extends EventContent {
  seq: number;
}

/**
 * Selects the columns in the order that `EventDecoder` expects. The caller adds conditions and an order. Large data is left
 * out and read when its event is decoded, so that a thousand rows never hold a thousand large messages.
 */
export function selectEvents({ sql }: Pick<Reader, 'sql'>, agent_num: number) {
  return sql
    .selectFrom('events')
    .select(['seq', 'ts', packed, unlessLarge(sql).as('text')])
    .where('agent_num', '=', agent_num);
}

/** A range of event numbers. */
export interface SeqRange {
  after: number;
  /** Inclusive; `Infinity` for the newest. */
  up_to: number;
}

/** Like `selectEvents`, for the events of a range, oldest first and at most `rows_max`. */
export function selectRange(reader: Reader, agent_num: number, { after, up_to }: SeqRange, rows_max: number) {
  return eventsInRange(reader, agent_num, after, Math.min(up_to, Number.MAX_SAFE_INTEGER), rows_max);
}

/** Like `selectEvents`, but only events of these types. */
export function selectEventsOf(reader: Reader, agent_num: number, types: readonly EventType[]) {
  return selectEvents(reader, agent_num).where('type', 'in', types.map(typeNumber));
}

/** Packs small columns into one number. */
const packed =
  sql<number>`type + coalesce(stream, 0) * 8 + coalesce(flags, 0) * 32 + coalesce(session_num, 0) * 128`.as(
    'packed',
  );

/**
 * With the packed columns, reading text as text takes a quarter of the time of reading all columns. In PostgreSQL, a
 * text cannot contain U+0000, so there it is decoded later.
 */
function textOf(builder: Reader['sql']) {
  return isPostgres(builder)
    ? sql<string | Uint8Array>`data`
    : sql<string | Uint8Array>`CASE WHEN flags >= ${sql.lit(BINARY)} THEN data ELSE CAST(data AS TEXT) END`;
}

/** Null for large data. Neither database reads it to know its length. */
function unlessLarge(builder: Reader['sql']) {
  const max = sql.lit(limits.event_inline_bytes_max);
  return sql<string | Uint8Array | null>`CASE WHEN length(data) <= ${max} THEN ${textOf(builder)} END`;
}

function decoded(data: string | Uint8Array, flags: number | null): string | Uint8Array {
  if (typeof data === 'string' || ((flags ?? 0) & BINARY) !== 0) return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
}

const SESSION_UNIT = 1 << 7;

/** Built once, because the search index reads each busy agent four times a second. */
const eventsInRange = preparedQuery(
  (query, agent_num: number, after: number, up_to: number, rows_max: number) =>
    selectEvents({ sql: query }, agent_num)
      .where('seq', '>', after)
      .where('seq', '<=', up_to)
      .orderBy('seq')
      .limit(rows_max),
);

/** Decodes selected rows. Caches the ids of sessions. */
export class EventDecoder {
  readonly #sessions = new Map<number, string>();

  async event(reader: Reader, agent_num: number, row: readonly unknown[]): Promise<StoredEvent> {
    const kind = await this.kind(reader, row);
    return { ...kind, data: dataOf(row) ?? (await largeDataOf(reader, agent_num, row)) };
  }

  /** The event without its data. */
  async kind(reader: Reader, row: readonly unknown[]): Promise<Omit<StoredEvent, 'data'>> {
    const bits = row[2] as number;
    const session_num = sessionNum(bits);
    return {
      seq: seqOf(row),
      ts_ms: row[1] as number,
      type: typeName(bits & 7),
      session_id: session_num === 0 ? null : await this.#sessionId(reader, session_num),
      stream: streamName((bits >> 3) & 3),
      partial: ((bits >> 5) & PARTIAL) !== 0,
    };
  }

  async #sessionId(reader: Reader, num: number): Promise<string> {
    let id = this.#sessions.get(num);
    if (id === undefined) {
      const row = await reader.get(reader.sql.selectFrom('sessions').select('id').where('num', '=', num));
      if (!row) throw new Error(`session ${num} of an event does not exist`);
      id = row.id;
      if (this.#sessions.size >= sharedLimits.sessions_cached_max) this.#sessions.clear();
      this.#sessions.set(num, id);
    }
    return id;
  }
}

/** The number of the event in a selected row. */
export function seqOf(row: readonly unknown[]): number {
  return row[0] as number;
}

/** The data of the event in a selected row; null if it is large. */
export function dataOf(row: readonly unknown[]): EventContent['data'] | null {
  const data = row[3] as EventContent['data'] | null;
  return data === null ? null : decoded(data, flagsOf(row));
}

const wholeText = preparedQuery((query, agent_num: number, seq: number) =>
  query
    .selectFrom('events')
    .select(textOf(query).as('text'))
    .where('agent_num', '=', agent_num)
    .where('seq', '=', seq),
);

/** The data that `dataOf` does not have. Read it in the transaction that selected the row. */
export async function largeDataOf(
  reader: Reader,
  agent_num: number,
  row: readonly unknown[],
): Promise<EventContent['data']> {
  const { text } = (await reader.get(wholeText(reader, agent_num, seqOf(row))))!;
  return decoded(text, flagsOf(row));
}

function flagsOf(row: readonly unknown[]): number {
  return (row[2] as number) >> 5;
}

/** Whether two selected rows differ only in number and data. */
export function isSameKind(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a[1] === b[1] && a[2] === b[2];
}

/** The session's number in a selected row; 0 if the event has no session. */
export function sessionNumOf(row: readonly unknown[]): number {
  return sessionNum(row[2] as number);
}

function sessionNum(bits: number): number {
  return Math.floor(bits / SESSION_UNIT);
}

/** Output of a session as `[seq, offset, length]`, oldest first; `after`: the number of an event. */
export function selectOutput(
  reader: Reader,
  of: { agent_num: number; session_num: number; streams: readonly StreamName[] },
  after: number,
) {
  return reader.sql
    .selectFrom('events')
    .select((eb) => ['seq', 'offset', eb.fn<number>('length', ['data']).as('length')])
    .where('agent_num', '=', of.agent_num)
    .where('seq', '>', after)
    .where('session_num', '=', of.session_num)
    .where('stream', 'in', of.streams.map(streamNumber))
    .orderBy('seq');
}

/** The last output of a session on one stream, as text, of at most `rows_max` unsealed events. */
export async function lastOutputText(
  reader: Reader,
  of: { agent_num: number; session_num: number; stream: StreamName },
  rows_max: number,
): Promise<string> {
  const rows = await reader.all(
    reader.sql
      .selectFrom('events')
      .select(['flags', textOf(reader.sql).as('text')])
      .where('agent_num', '=', of.agent_num)
      .where('session_num', '=', of.session_num)
      .where('stream', '=', streamNumber(of.stream))
      .orderBy('seq', 'desc')
      .limit(rows_max),
  );
  return rows
    .toReversed()
    .map(({ text, flags }) => decoded(text, flags))
    .map((data) => (typeof data === 'string' ? data : ''))
    .join('');
}

/** The number of an agent's first unsealed event from `seq` on; undefined if there is none. */
export async function firstSeqFrom(
  reader: Reader,
  agent_num: number,
  seq: number,
): Promise<number | undefined> {
  return (
    await reader.get(
      reader.sql
        .selectFrom('events')
        .select('seq')
        .where('agent_num', '=', agent_num)
        .where('seq', '>=', seq)
        .orderBy('seq')
        .limit(1),
    )
  )?.seq;
}
