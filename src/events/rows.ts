/** Stored events as rows: what is selected, in which order, and what the columns mean. */
import { type CompiledQuery, type Selectable, sql } from 'kysely';
import { limits } from '../base/limits.ts';
import type { Reader, Tx } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import type { StoredEvent } from './frame.ts';

/** An agent by its number, which rows carry, and its id, which frames carry. */
export interface AgentRef {
  num: number;
  id: string;
}

type EventRow = Omit<Selectable<Tables['events']>, 'id'>;

let insert: CompiledQuery | undefined;

/** Built once: building a query costs more than running it. */
export function insertEvent(tx: Tx, row: EventRow): void {
  insert ??= tx.sql.insertInto('events').values(row).compile();
  const query = { ...insert, parameters: Object.values(row) };
  tx.run({ compile: () => query });
}

/** Columns in the order that `EventRows.event` expects. */
export function selectEvents(reader: Reader, agent_num: number) {
  return reader.sql
    .selectFrom('events')
    .select(['seq', 'ts', packed, text])
    .where('agent_num', '=', agent_num);
}

/** Small columns in one number, and text where it is text: a row costs a quarter of what its columns would. */
const packed =
  sql<number>`type + coalesce(stream, 0) * 8 + coalesce(flags, 0) * 32 + coalesce(session_num, 0) * 128`.as(
    'packed',
  );
const text = sql<string | Uint8Array>`CASE WHEN flags >= 2 THEN data ELSE CAST(data AS TEXT) END`.as('text');

const SESSION_UNIT = 1 << 7;

export function sessionOf(row: readonly unknown[]): number {
  return Math.floor((row[2] as number) / SESSION_UNIT);
}

export class EventRows {
  readonly #sessions = new Map<number, string>();

  event(reader: Reader, row: readonly unknown[]): StoredEvent {
    const bits = row[2] as number;
    const session_num = sessionOf(row);
    return {
      seq: row[0] as number,
      ts_ms: row[1] as number,
      type: bits & 7,
      session_id: session_num === 0 ? null : this.#sessionId(reader, session_num),
      stream: (bits >> 3) & 3,
      partial: (bits & (1 << 5)) !== 0,
      data: row[3] as string | Uint8Array,
    };
  }

  #sessionId(reader: Reader, num: number): string {
    let id = this.#sessions.get(num);
    if (id === undefined) {
      const row = reader.get(reader.sql.selectFrom('sessions').select('id').where('num', '=', num));
      if (!row) throw new Error(`session ${num} of an event does not exist`);
      id = row.id;
      if (this.#sessions.size >= limits.sessions_cached_max) this.#sessions.clear();
      this.#sessions.set(num, id);
    }
    return id;
  }
}
