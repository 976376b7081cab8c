/**
 * The full-text index of output and conversations, in a separate SQLite file that can be deleted at any time: it is
 * rebuilt from the log, on any kind of database. It stores words and numbers, not the text. Row numbers are
 * `agent << 40 | seq`, so each agent's rows form a range. Runs in the worker, with bounded transactions. While it catches
 * up, it pauses after each transaction for as long as the transaction took.
 */
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { searchableTexts } from '../acp/search-text.ts';
import { isExhausted } from '../base/files.ts';
import type { EventRecord } from '../core/event.ts';
import { countWords } from '../core/words.ts';
import { headsWithEvents, headWithId } from '../store/event-rows/heads.ts';
import { ftsQuery, searchPhrases } from '../store/fts.ts';
import { historyId } from '../store/plane-id.ts';
import { isOutage } from '../store/problems.ts';
import type { Store } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import { History } from './history.ts';
import { limits } from './limits.ts';
import { segmentAfter } from './queries/segments.ts';
import type { SegmentReader } from './segment.ts';

export interface SearchRequest {
  agent_num: number;
  /** The search text from the user. */
  text: string;
  /** Only events before this one. */
  before: number;
  /** Events before this one are no longer kept. */
  first_seq: number;
  limit: number;
}

export interface SearchPart {
  /** Numbers of matching events, newest first. */
  seqs: number[];
  /** The next part examines the events before this one. */
  before: number;
}

const SEQ_BITS = 40n;
const SEQ_MASK = 2 ** 40 - 1;
const VERSION = 3;

const schema = `
CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
CREATE TABLE cursors (agent_num INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
-- The index of another database, or of one before a restore, would have other agents with the same numbers.
CREATE TABLE origin (plane_id TEXT NOT NULL);
PRAGMA user_version = ${VERSION};
`;

/** The searchable text of an event; empty if it has none. */
interface IndexEntry {
  num: number;
  seq: number;
  text: string;
}

export interface Updated {
  /** Numbers of the agents that have more events to index. */
  unfinished: number[];
  /** Ids of the agents whose next events cannot be read. */
  unreadable: string[];
  /** Why the last of these cannot be read, if it is not a missing or damaged segment. */
  reason?: string;
}

type Snapshots = Pick<Store, 'read'>;

interface NewEntries {
  entries: IndexEntry[];
  has_more: boolean;
  unreadable_id?: string;
  reason?: string;
}

const nothing_new: NewEntries = { entries: [], has_more: false };

export class SearchIndex {
  readonly #db: DatabaseSync;
  readonly #reader: Snapshots;
  readonly #history: History;
  readonly #statements = new Map<string, StatementSync>();
  /** Agents that were deleted during an update. Their events that are still waiting to be inserted are skipped. */
  readonly #forgotten = new Set<number>();

  private constructor(db: DatabaseSync, reader: Snapshots, segments: SegmentReader) {
    this.#db = db;
    this.#reader = reader;
    this.#history = new History(reader, segments);
  }

  /** Opens or creates the index, and begins to delete the entries of deleted agents. */
  static async open(path: string, reader: Snapshots, segments: SegmentReader): Promise<SearchIndex> {
    const origin = await reader.read(historyId);
    const index = new SearchIndex(openOrRecreate(path, origin), reader, segments);
    await index.#forgetDeletedAgents();
    return index;
  }

  /** Agents whose entries differ from their log. */
  async stale(): Promise<number[]> {
    const cursors = new Map<number, number>();
    for (const { agent_num, seq } of this.#db.prepare('SELECT agent_num, seq FROM cursors').iterate()) {
      cursors.set(Number(agent_num), Number(seq));
    }
    const heads = await this.#reader.read(headsWithEvents);
    return heads
      .filter(
        ({ agent_num, first_seq, last_seq }) =>
          cursors.get(agent_num) !== last_seq || this.#hasBefore(agent_num, first_seq),
      )
      .map(({ agent_num }) => agent_num);
  }

  /** Indexes some new events of each agent. Runs once at a time. */
  async update(agent_nums: readonly number[]): Promise<Updated> {
    this.#forgotten.clear();
    const unfinished: number[] = [];
    const unreadable: string[] = [];
    let last_reason: string | undefined;
    // Agents share transactions: one for each of 50 agents costs 3.6 times as much CPU.
    let found: IndexEntry[] = [];
    let size = 0;
    for (const num of agent_nums) {
      const { entries, has_more, unreadable_id, reason } = await this.#newEntries(num);
      if (has_more) unfinished.push(num);
      if (unreadable_id !== undefined) unreadable.push(unreadable_id);
      last_reason = reason ?? last_reason;
      for (const entry of entries) {
        found.push(entry);
        size += entry.text.length;
        if (
          found.length < limits.search_events_per_transaction &&
          size < limits.search_chars_per_transaction
        ) {
          continue;
        }
        await this.#insert(found);
        found = [];
        size = 0;
      }
    }
    await this.#insert(found);
    return { unfinished, unreadable, ...(last_reason !== undefined && { reason: last_reason }) };
  }

  /**
   * Searches the newest of these events, for about `limits.search_part_ms`. The search is complete when it has found `limit` of
   * them, or when none is left.
   */
  find({ agent_num, text, before, first_seq, limit }: SearchRequest): SearchPart {
    const until_ms = performance.now() + limits.search_part_ms;
    const phrases = searchPhrases(text);
    if (phrases.length === 0) return { seqs: [], before: first_seq };
    const select = this.#db.prepare(
      `SELECT rowid & ${SEQ_MASK} AS seq FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?`,
    );
    const events_max = Math.floor(limits.search_events_words_max / countWords(text));
    const seqs: number[] = [];
    // Never exceed the agent's range, because the next numbers belong to another agent.
    let end = Math.min(before, SEQ_MASK);
    let events: number = limits.search_events_min;
    do {
      const begin = Math.max(first_seq, end - events);
      const [from, to] = [rowId(agent_num, begin), rowId(agent_num, end - 1)];
      const found = select.all(ftsQuery(phrases), from, to, limit - seqs.length);
      seqs.push(...found.map(({ seq }) => Number(seq)));
      end = found.length > 0 ? begin : this.#endBelow(agent_num, first_seq, begin);
      // The events of the next query may take more time than those of the last one, so it examines only a few more.
      events = Math.min(events * 2, events_max);
    } while (end > first_seq && seqs.length < limit && performance.now() < until_ms);
    return { seqs, before: end };
  }

  /** The number after the newest indexed event before this one. Numbers jump far ahead after a restore or a failover. */
  #endBelow(agent_num: number, first_seq: number, before: number): number {
    const newest = this.#db
      .prepare(
        `SELECT rowid & ${SEQ_MASK} AS seq FROM words WHERE rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT 1`,
      )
      .get(rowId(agent_num, first_seq), rowId(agent_num, before - 1));
    return newest === undefined ? first_seq : Number(newest.seq) + 1;
  }

  /** Deletes the entries of a deleted agent, in batches. Idempotent. */
  async forget(agent_num: number): Promise<void> {
    this.#forgotten.add(agent_num);
    await this.#clear(agent_num);
  }

  async #clear(agent_num: number): Promise<void> {
    this.#statement('DELETE FROM cursors WHERE agent_num = ?').run(agent_num);
    await this.#deleteBefore(agent_num, SEQ_MASK);
  }

  /**
   * Returns a statement, prepared once. It reads integers as BigInt, because FTS5 inserts internal rows with ids above
   * 2^53, and every `run` returns the last row id.
   */
  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare(sql);
      statement.setReadBigInts(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** The agent's next events that are not indexed yet. Only one batch, so that no agent waits for another's backlog. */
  async #newEntries(num: number): Promise<NewEntries> {
    const agent = await this.#reader.read((reader) => headWithId(reader, num));
    if (!agent) return nothing_new;
    const known = this.#statement('SELECT seq FROM cursors WHERE agent_num = ?').get(num);
    let cursor = Number(known?.seq ?? 0);
    // A restore replaced the log, so the indexed events may differ from the current ones.
    if (cursor > agent.last_seq) {
      await this.#clear(num);
      cursor = 0;
    }
    if (known && agent.first_seq > 1) await this.#deleteBefore(num, agent.first_seq);
    if (cursor === agent.last_seq) return nothing_new;
    // The events may be unreadable only for now, so the cursor stays. Later events, and the next start, try again.
    const unreadable = { ...nothing_new, unreadable_id: agent.id };
    try {
      const entries = await this.#entriesAfter({ num, id: agent.id }, cursor);
      if (entries) return { entries, has_more: entries.at(-1)!.seq < agent.last_seq };
    } catch (error) {
      if (isOutage(error) || isExhausted(error)) throw error;
      return { ...unreadable, reason: String(error) };
    }
    const segment = await this.#reader.read((reader) => segmentAfter(reader, num, cursor));
    if (segment && segment.first_seq <= agent.last_seq) return unreadable;
    // Retention deleted the remaining events up to the head, which was read before them.
    this.#moveCursor(num, agent.last_seq);
    return nothing_new;
  }

  /** The next events after `cursor`; null if none are left that can be read. */
  async #entriesAfter(agent: AgentRef, cursor: number): Promise<IndexEntry[] | null> {
    const { num } = agent;
    for await (const records of this.#history.records(agent, cursor, { limit: limits.replay_rows_first })) {
      return records.map(({ record }) => ({ num, seq: record.seq, text: plainText(record) }));
    }
    return null;
  }

  #moveCursor(num: number, seq: number): void {
    if (this.#forgotten.has(num)) return;
    this.#statement(
      'INSERT INTO cursors VALUES (?, ?) ON CONFLICT (agent_num) DO UPDATE SET seq = excluded.seq',
    ).run(num, seq);
  }

  async #insert(found: readonly IndexEntry[]): Promise<void> {
    if (found.length === 0) return;
    const begun_ms = performance.now();
    const insert = this.#statement('INSERT INTO words (rowid, text) VALUES (?, ?)');
    this.#db.exec('BEGIN');
    try {
      for (const [i, { num, seq, text }] of found.entries()) {
        if (this.#forgotten.has(num)) continue;
        if (text !== '') insert.run(rowId(num, seq), text);
        if (found[i + 1]?.num !== num) this.#moveCursor(num, seq);
      }
      this.#db.exec('COMMIT');
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
    await setTimeout(performance.now() - begun_ms);
  }

  #hasBefore(num: number, seq: number): boolean {
    if (seq <= 1) return false;
    const first = this.#statement('SELECT 1 FROM words WHERE rowid >= ? AND rowid < ? LIMIT 1');
    return first.get(rowId(num, 0), rowId(num, seq)) !== undefined;
  }

  async #deleteBefore(num: number, seq: number): Promise<void> {
    const remove = this.#statement(
      'DELETE FROM words WHERE rowid IN (SELECT rowid FROM words WHERE rowid >= ? AND rowid < ? LIMIT ?)',
    );
    while (true) {
      const { changes } = remove.run(rowId(num, 0), rowId(num, seq), limits.search_events_per_transaction);
      if (Number(changes) === 0) return;
      await setTimeout(1);
    }
  }

  async #forgetDeletedAgents(): Promise<void> {
    const known = this.#db.prepare('SELECT agent_num FROM cursors').all();
    const agents = await this.#reader.read((reader) =>
      reader.all(reader.sql.selectFrom('agents').select('num')),
    );
    const living = new Set(agents.map(({ num }) => num));
    for (const { agent_num } of known) {
      // If the disk is full, for example, the next start tries again. Until then, nothing finds the entries.
      if (!living.has(Number(agent_num))) this.forget(Number(agent_num)).catch(() => {});
    }
  }
}

function openOrRecreate(path: string, origin: string): DatabaseSync {
  try {
    return openIndex(path, origin);
  } catch {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    return openIndex(path, origin);
  }
}

function openIndex(path: string, origin: string): DatabaseSync {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  const db = new DatabaseSync(path);
  try {
    // If the newest transactions are lost, their events are indexed again.
    db.exec('PRAGMA journal_mode = WAL');
    db.exec('PRAGMA synchronous = NORMAL');
    const version = Number(db.prepare('PRAGMA user_version').get()!.user_version);
    if (version === 0) {
      db.exec(schema);
      db.prepare('INSERT INTO origin VALUES (?)').run(origin);
    } else if (version !== VERSION) throw new Error('the index has another version');
    const found = db.prepare('SELECT plane_id FROM origin').get();
    if (found?.plane_id !== origin)
      throw new Error('the index belongs to another database, or to one before a restore');
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

/**
 * The readable text of an event without terminal escape sequences, at most `limits.search_chars_per_event` characters;
 * empty if there is nothing to search for.
 */
export function plainText(record: EventRecord): string {
  const text = textOf(record);
  if (typeof text !== 'string') return '';
  return stripVTControlCharacters(text.slice(0, limits.search_chars_per_event));
}

function textOf(record: EventRecord): unknown {
  if (record.type === 'output') return record.encoding === undefined ? record.data : '';
  if (record.type === 'error') return record.error;
  if (record.type !== 'acp_event' || record.replay) return '';
  return searchableTexts(record.payload).join('\n');
}
