/**
 * Full text of output and conversations, in a database file of its own that can be deleted at any time: it is filled again from the log.
 * It keeps words and numbers, not the text. Rows are numbered `agent << 40 | seq`, so that an agent is a range. Runs in
 * the worker, at most 200 events a transaction, and as long idle as busy while it catches up.
 */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { wordsOf } from '../acp/reading.ts';
import { limits } from '../base/limits.ts';
import type { EventRecord } from '../domain/event.ts';
import { ftsQuery } from '../store/fts.ts';
import type { Reader } from '../store/store.ts';
import { frameRecord, splitFrames } from './frame.ts';
import { History } from './history.ts';

export interface SearchRequest {
  agent_num: number;
  /** What the user typed. */
  text: string;
  /** Only events before this one. */
  before: number | null;
  /** Events before this one are no longer kept. */
  first_seq: number;
  limit: number;
}

const SEQ_BITS = 40n;
const SEQ_MASK = 2 ** 40 - 1;
const VERSION = 2;

const schema = `
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
CREATE TABLE cursors (agent_num INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
PRAGMA user_version = ${VERSION};
`;

type Snapshots = { read<T>(fn: (reader: Reader) => T): T };

export class SearchIndex {
  readonly #db: DatabaseSync;
  readonly #reader: Snapshots;
  readonly #history: History;

  constructor(path: string, reader: Snapshots, folder: string) {
    this.#db = openOrMakeAgain(path);
    this.#reader = reader;
    this.#history = new History({ read: async (fn) => reader.read(fn) }, folder);
    this.#forgetDeletedAgents();
  }

  /** Indexes some of what is new of each agent; answers those that have more. */
  async update(agent_nums: readonly number[]): Promise<number[]> {
    const unfinished: number[] = [];
    for (const num of agent_nums) {
      if (await this.#updateAgent(num)) unfinished.push(num);
    }
    return unfinished;
  }

  /** Numbers of matching events, newest first. */
  find({ agent_num, text, before, first_seq, limit }: SearchRequest): number[] {
    const query = ftsQuery(text);
    if (query === null) return [];
    // Never beyond the agent's own numbers: the next ones are another agent's.
    const last = before === null ? SEQ_MASK : Math.min(before - 1, SEQ_MASK);
    return this.#db
      .prepare(
        `SELECT rowid & ${SEQ_MASK} AS seq FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?`,
      )
      .all(query, rowId(agent_num, first_seq), rowId(agent_num, last), limit)
      .map((row) => Number(row.seq));
  }

  /** Deletes an agent's words, some at a time. */
  async forget(agent_num: number): Promise<void> {
    this.#writer('DELETE FROM cursors WHERE agent_num = ?').run(agent_num);
    await this.#deleteBefore(agent_num, SEQ_MASK);
  }

  /** The index numbers rows of its own beyond what a number holds, and every `run` answers the last such number. */
  #writer(sql: string): StatementSync {
    const statement = this.#db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }

  async #updateAgent(num: number): Promise<boolean> {
    const agent = this.#reader.read((reader) =>
      reader.get(
        reader.sql
          .selectFrom('heads')
          .innerJoin('agents', 'agents.num', 'heads.agent_num')
          .select(['agents.id', 'heads.last_seq', 'heads.first_seq'])
          .where('agents.num', '=', num),
      ),
    );
    if (!agent) return false;
    const known = this.#db.prepare('SELECT seq FROM cursors WHERE agent_num = ?').get(num);
    let cursor = Number(known?.seq ?? 0);
    // The log was put back by a restore: what was indexed may be something else now.
    if (cursor > agent.last_seq) {
      await this.forget(num);
      cursor = 0;
    }
    if (known && agent.first_seq > 1) await this.#deleteBefore(num, agent.first_seq);
    let pending: Buffer[] = [];
    for await (const part of this.#history.after({ num, id: agent.id }, cursor)) {
      for (const one of splitFrames(part.frames)) {
        pending.push(one);
        if (pending.length >= limits.search_events_per_transaction) {
          await this.#insert(num, pending);
          pending = [];
        }
      }
      await this.#insert(num, pending);
      pending = [];
      cursor = part.last_seq;
      // One part a round, so that no agent waits for another's backlog.
      break;
    }
    return cursor < agent.last_seq;
  }

  async #insert(num: number, frames: readonly Buffer[]): Promise<void> {
    if (frames.length === 0) return;
    const begun_ms = performance.now();
    const insert = this.#writer('INSERT INTO words (rowid, text) VALUES (?, ?)');
    let last = 0;
    this.#db.exec('BEGIN');
    try {
      for (const bytes of frames) {
        const record = frameRecord(bytes);
        last = record.seq;
        const text = plainText(record);
        if (text !== '') insert.run(rowId(num, last), text);
      }
      this.#writer(
        'INSERT INTO cursors VALUES (?, ?) ON CONFLICT (agent_num) DO UPDATE SET seq = excluded.seq',
      ).run(num, last);
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
    await setTimeout(performance.now() - begun_ms);
  }

  async #deleteBefore(num: number, seq: number): Promise<void> {
    const remove = this.#writer(
      'DELETE FROM words WHERE rowid IN (SELECT rowid FROM words WHERE rowid >= ? AND rowid < ? LIMIT ?)',
    );
    while (true) {
      const { changes } = remove.run(rowId(num, 0), rowId(num, seq), limits.search_events_per_transaction);
      if (Number(changes) === 0) return;
      await setTimeout(1);
    }
  }

  #forgetDeletedAgents(): void {
    const known = this.#db.prepare('SELECT agent_num FROM cursors').all();
    const living = new Set(
      this.#reader
        .read((reader) => reader.all(reader.sql.selectFrom('agents').select('num')))
        .map(({ num }) => num),
    );
    for (const { agent_num } of known) {
      if (!living.has(Number(agent_num))) void this.forget(Number(agent_num));
    }
  }
}

function openOrMakeAgain(path: string): DatabaseSync {
  try {
    return openIndex(path);
  } catch {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    return openIndex(path);
  }
}

function openIndex(path: string): DatabaseSync {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  const db = new DatabaseSync(path);
  try {
    // Losing the newest transactions costs indexing them again.
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    const version = Number(db.prepare('PRAGMA user_version').get()!.user_version);
    if (version === 0) db.exec(schema);
    else if (version !== VERSION) throw new Error('another version of the index');
    db.prepare('SELECT count(*) FROM cursors').get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function rowId(agent_num: number, seq: number): bigint {
  return (BigInt(agent_num) << SEQ_BITS) | BigInt(seq);
}

/** What a person would read of an event, without colours; empty when there is nothing to find. */
export function plainText(record: EventRecord): string {
  const text = textOf(record);
  if (typeof text !== 'string') return '';
  return stripVTControlCharacters(text.slice(0, limits.search_chars_per_event));
}

function textOf(record: EventRecord): unknown {
  if (record.type === 'output') return record.encoding === undefined ? record.data : '';
  if (record.type === 'error') return record.error;
  if (record.type !== 'acp_event' || record.replay) return '';
  return wordsOf(record.payload).join('\n');
}
