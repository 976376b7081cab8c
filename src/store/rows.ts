/**
 * The byte path's statements, prepared by hand on the writing connection: events of a batch, the log's head and the
 * stream's committed offset move together or not at all. Every check is made by the statement that writes, so nothing
 * but ids is remembered, and ids only until something is undone.
 */
import { isUtf8 } from 'node:buffer';
import type { StatementSync } from 'node:sqlite';
import { limits } from '../base/limits.ts';
import { allUtf8 } from '../base/utf8.ts';
import { problems } from '../domain/problem.ts';
import type { Connection } from './connection.ts';
import { type Appended, type IngestBatch, StaleBatch } from './store.ts';

const OUTPUT = 1;
const streamNumber = { stdout: 1, stderr: 2 } as const;

export class ByteRows {
  readonly #moveOffset: StatementSync;
  readonly #findSpool: StatementSync;
  readonly #addSpool: StatementSync;
  readonly #moveHead: StatementSync;
  readonly #addEvent: StatementSync;
  readonly #findSession: StatementSync;
  /** Session id → its number and its agent's. */
  readonly #sessions = new Map<string, { session_num: number; agent_num: number }>();

  constructor({ db }: Connection) {
    this.#moveOffset = db.prepare(
      'UPDATE spools SET offset = ?, tail = ?, output = ? WHERE session_num = ? AND stream = ? AND offset = ?',
    );
    this.#findSpool = db.prepare('SELECT 1 FROM spools WHERE session_num = ? AND stream = ?');
    this.#addSpool = db.prepare(
      'INSERT INTO spools (session_num, stream, offset, tail, output) VALUES (?, ?, ?, ?, ?)',
    );
    this.#moveHead = db.prepare(
      'UPDATE heads SET last_seq = last_seq + ?, bytes = bytes + ? WHERE agent_num = ? RETURNING last_seq',
    );
    this.#addEvent = db.prepare(
      'INSERT INTO events (agent_num, seq, ts, type, session_num, stream, offset, flags, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#findSession = db.prepare('SELECT num, agent_num FROM sessions WHERE id = ?');
  }

  /** After any undoing: numbers of undone rows are given out again. */
  forget(): void {
    this.#sessions.clear();
  }

  insert(batch: IngestBatch): Appended {
    const { session_num, agent_num } = this.#find(batch.session_id);
    const stream = streamNumber[batch.stream];
    this.#move(session_num, stream, batch);

    const count = batch.ends.length;
    const cost = batch.bytes.length + count * limits.event_row_bytes;
    const head = this.#moveHead.get(count, cost, agent_num);
    if (!head) throw problems.agentNotFound();
    const last_seq = Number(head.last_seq);
    const first_seq = last_seq - count + 1;

    const sound = allUtf8(batch.bytes, batch.ends);
    const { output_from = batch.from } = batch;
    let from = 0;
    for (let i = 0; i < count; i++) {
      const end = batch.ends[i]!;
      const data = batch.bytes.subarray(from, end);
      this.#addEvent.run(
        agent_num,
        first_seq + i,
        batch.ts_ms,
        OUTPUT,
        session_num,
        stream,
        output_from + from,
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
      const row = this.#findSession.get(session_id);
      if (!row) throw problems.sessionNotFound();
      found = { session_num: Number(row.num), agent_num: Number(row.agent_num) };
      if (this.#sessions.size >= limits.sessions_cached_max) this.#sessions.clear();
      this.#sessions.set(session_id, found);
    }
    return found;
  }

  #move(session_num: number, stream: number, batch: IngestBatch): void {
    const output_to = (batch.output_from ?? batch.from) + batch.bytes.length;
    const output = output_to === batch.to ? null : output_to;
    const moved = this.#moveOffset.run(batch.to, batch.tail, output, session_num, stream, batch.from);
    if (Number(moved.changes) === 1) return;
    if (this.#findSpool.get(session_num, stream) || batch.from !== 0) throw new StaleBatch();
    this.#addSpool.run(session_num, stream, batch.to, batch.tail, output);
  }
}
