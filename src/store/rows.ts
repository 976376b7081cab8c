/**
 * The byte path's statements, prepared by hand on the writing connection: events of a batch, the log's head and the
 * stream's committed offset move together or not at all. Every check is made by the statement that writes, so nothing
 * but ids is remembered, and ids only until something is undone.
 */
import { isUtf8 } from 'node:buffer';
import { limits } from '../base/limits.ts';
import { allUtf8 } from '../base/utf8.ts';
import { problems } from '../domain/problem.ts';
import type { Connection } from './connection.ts';
import { type Appended, type IngestBatch, StaleBatch } from './store.ts';

const OUTPUT = 1;
const streamNumber = { stdout: 1, stderr: 2 } as const;

export class ByteRows {
  readonly #connection: Connection;
  /** Session id → its number and its agent's. */
  readonly #sessions = new Map<string, { session_num: number; agent_num: number }>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** After any undoing: numbers of undone rows are given out again. */
  forget(): void {
    this.#sessions.clear();
  }

  insert(batch: IngestBatch): Appended {
    const { session_num, agent_num } = this.#find(batch.session_id);
    const stream = streamNumber[batch.stream];
    this.#moveOffset(session_num, stream, batch);

    const count = batch.ends.length;
    const cost = batch.bytes.length + count * limits.event_row_bytes;
    const head = this.#connection
      .statement(
        'UPDATE heads SET last_seq = last_seq + ?, bytes = bytes + ? WHERE agent_num = ? RETURNING last_seq',
      )
      .get(count, cost, agent_num);
    if (!head) throw problems.agentNotFound();
    const last_seq = Number(head.last_seq);
    const first_seq = last_seq - count + 1;

    const insert = this.#connection.statement(
      'INSERT INTO events (agent_num, seq, ts, type, session_num, stream, offset, flags, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    const sound = allUtf8(batch.bytes, batch.ends);
    let from = 0;
    for (let i = 0; i < count; i++) {
      const end = batch.ends[i]!;
      const data = batch.bytes.subarray(from, end);
      insert.run(
        agent_num,
        first_seq + i,
        batch.ts_ms,
        OUTPUT,
        session_num,
        stream,
        batch.from + from,
        (batch.partial[i] ? 1 : 0) | (sound || isUtf8(data) ? 0 : 2),
        data,
      );
      from = end;
    }
    return { agent_id: batch.agent_id, agent_num, first_seq, last_seq };
  }

  #find(session_id: string): { session_num: number; agent_num: number } {
    let found = this.#sessions.get(session_id);
    if (!found) {
      const row = this.#connection
        .statement('SELECT num, agent_num FROM sessions WHERE id = ?')
        .get(session_id);
      if (!row) throw problems.sessionNotFound();
      found = { session_num: Number(row.num), agent_num: Number(row.agent_num) };
      if (this.#sessions.size >= limits.sessions_cached_max) this.#sessions.clear();
      this.#sessions.set(session_id, found);
    }
    return found;
  }

  #moveOffset(session_num: number, stream: number, batch: IngestBatch): void {
    const moved = this.#connection
      .statement('UPDATE spools SET offset = ?, tail = ? WHERE session_num = ? AND stream = ? AND offset = ?')
      .run(batch.to, batch.tail, session_num, stream, batch.from);
    if (Number(moved.changes) === 1) return;
    const known = this.#connection
      .statement('SELECT 1 FROM spools WHERE session_num = ? AND stream = ?')
      .get(session_num, stream);
    if (known || batch.from !== 0) throw new StaleBatch();
    this.#connection
      .statement('INSERT INTO spools (session_num, stream, offset, tail) VALUES (?, ?, ?, ?)')
      .run(session_num, stream, batch.to, batch.tail);
  }
}
