/** Stored events as rows: what is selected, in which order, and what the columns mean. */
import { limits } from '../base/limits.ts';
import type { Reader } from '../store/store.ts';
import type { StoredEvent } from './frame.ts';

/** An agent by its number, which rows carry, and its id, which frames carry. */
export interface AgentRef {
  num: number;
  id: string;
}

/** Columns in the order that `EventRows.event` expects. */
export function selectEvents(reader: Reader, agent_num: number) {
  return reader.sql
    .selectFrom('events')
    .select(['seq', 'ts', 'type', 'session_num', 'stream', 'partial', 'data', 'offset'])
    .where('agent_num', '=', agent_num);
}

export class EventRows {
  readonly #sessions = new Map<number, string>();

  event(reader: Reader, row: readonly unknown[]): StoredEvent {
    const session_num = row[3] as number | null;
    return {
      seq: row[0] as number,
      ts_ms: row[1] as number,
      type: row[2] as number,
      session_id: session_num === null ? null : this.#sessionId(reader, session_num),
      stream: row[4] as number | null,
      partial: row[5] as number | null,
      data: row[6] as Uint8Array,
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
