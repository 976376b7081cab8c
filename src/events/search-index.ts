/**
 * The full-text index of output and conversations, in a separate database file that can be deleted at any time: it is rebuilt
 * from the log. It stores words and numbers, not the text. Row numbers are `agent << 40 | seq`, so each agent's rows form a range.
 * Runs in the worker, at most 200 events per transaction. While it catches up, it works half of the time.
 */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { searchTexts } from '../acp/search-text.ts';
import type { EventRecord } from '../core/event.ts';
import { headWithId } from '../store/event-rows/heads.ts';
import { ftsQuery } from '../store/fts.ts';
import type { Reader } from '../store/store.ts';
import { History } from './history.ts';
import { limits } from './limits.ts';

export interface SearchRequest {
  agent_num: number;
  /** The search text from the user. */
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
    this.#db = openOrRecreate(path);
    this.#reader = reader;
    this.#history = new History({ read: async (fn) => reader.read(fn) }, folder);
    this.#forgetDeletedAgents();
  }

  /** Indexes some new events of each agent; returns the agents that have more. */
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
    // Never beyond the agent's range: the next numbers belong to another agent.
    const last = before === null ? SEQ_MASK : Math.min(before - 1, SEQ_MASK);
    return this.#db
      .prepare(
        `SELECT rowid & ${SEQ_MASK} AS seq FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?`,
      )
      .all(query, rowId(agent_num, first_seq), rowId(agent_num, last), limit)
      .map((row) => Number(row.seq));
  }

  /** Deletes an agent's entries, in batches. */
  async forget(agent_num: number): Promise<void> {
    this.#writer('DELETE FROM cursors WHERE agent_num = ?').run(agent_num);
    await this.#deleteBefore(agent_num, SEQ_MASK);
  }

  /** FTS5 inserts internal rows with ids above 2^53, and every `run` returns the last row id. */
  #writer(sql: string): StatementSync {
    const statement = this.#db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  }

  async #updateAgent(num: number): Promise<boolean> {
    const agent = this.#reader.read((reader) => headWithId(reader, num));
    if (!agent) return false;
    const known = this.#db.prepare('SELECT seq FROM cursors WHERE agent_num = ?').get(num);
    let cursor = Number(known?.seq ?? 0);
    // A restore replaced the log: the indexed events may be different ones now.
    if (cursor > agent.last_seq) {
      await this.forget(num);
      cursor = 0;
    }
    if (known && agent.first_seq > 1) await this.#deleteBefore(num, agent.first_seq);
    const per_insert = limits.search_events_per_transaction;
    const options = { limit: limits.replay_rows_min };
    for await (const records of this.#history.records({ num, id: agent.id }, cursor, options)) {
      for (let at = 0; at < records.length; at += per_insert) {
        await this.#insert(num, records.slice(at, at + per_insert));
      }
      cursor = records.at(-1)!.seq;
      // One batch per agent and round, so that no agent waits for another's backlog.
      break;
    }
    return cursor < agent.last_seq;
  }

  async #insert(num: number, records: readonly EventRecord[]): Promise<void> {
    const begun_ms = performance.now();
    const insert = this.#writer('INSERT INTO words (rowid, text) VALUES (?, ?)');
    let last = 0;
    this.#db.exec('BEGIN');
    try {
      for (const record of records) {
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

function openOrRecreate(path: string): DatabaseSync {
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
    // If the newest transactions are lost, they are indexed again.
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

/** The readable text of an event, without colours; empty if there is nothing to search for. */
export function plainText(record: EventRecord): string {
  const text = textOf(record);
  if (typeof text !== 'string') return '';
  return stripVTControlCharacters(text.slice(0, limits.search_chars_per_event));
}

function textOf(record: EventRecord): unknown {
  if (record.type === 'output') return record.encoding === undefined ? record.data : '';
  if (record.type === 'error') return record.error;
  if (record.type !== 'acp_event' || record.replay) return '';
  return searchTexts(record.payload).join('\n');
}
