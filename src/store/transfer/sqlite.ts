/** A SQLite file as the original or the copy of a transfer. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Logger } from '../../base/log.ts';
import { openReadOnly, openWriter } from '../connection.ts';
import { quickCheck } from '../integrity.ts';
import { limits } from '../limits.ts';
import { migrate } from '../migrate.ts';
import { openSqlite } from '../sqlite.ts';
import { StoreDamaged } from '../store.ts';
import { BLOCKS, columnList, quoted, type Row, type TransferTable } from './tables.ts';
import type { TransferSource, TransferTarget } from './transfer.ts';

/** A segment as the database describes it. */
export interface RecordedSegment {
  agent_num: number;
  path: string;
  /** The index of its blocks. */
  blocks: Uint8Array;
}

/** The blocks of segments, which are not in the database file. Rows are those of the table `segment_blocks`. */
export interface SegmentBlocks {
  batches(segments: Iterable<RecordedSegment>): AsyncIterable<readonly Row[]>;
  /** The rows of a segment come one after the other, in order. */
  insert(rows: readonly Row[]): Promise<void>;
  /** Called after the last row: everything is on disk then. */
  flush(): Promise<void>;
}

/**
 * Opens an existing file, which nobody else may write to. Checks it, and upgrades its schema first, as a plane that starts does.
 * Throws `StoreDamaged`, or `DatabaseTooNew`.
 */
export async function openSourceFile(path: string, blocks: SegmentBlocks, log: Logger): Promise<SqliteCopy> {
  await (await openSqlite({ path, log })).close();
  return new SqliteCopy(openReadOnly(path).db, path, blocks);
}

/** Creates a file. It is complete after `finish`. */
export function createTargetFile(path: string, blocks: SegmentBlocks): SqliteCopy {
  const { db } = openWriter(path);
  migrate(db, path);
  return new SqliteCopy(db, path, blocks);
}

export class SqliteCopy implements TransferSource, TransferTarget {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #blocks: SegmentBlocks;

  constructor(db: DatabaseSync, path: string, blocks: SegmentBlocks) {
    this.#db = db;
    this.#path = path;
    this.#blocks = blocks;
  }

  async *batches(table: TransferTable): AsyncGenerator<readonly Row[]> {
    if (table.name === BLOCKS) {
      yield* this.#blocks.batches(this.#segments());
      return;
    }
    const statement = this.#db.prepare(`SELECT ${columnList(table)} FROM ${quoted(table.name)}`, {
      returnArrays: true,
    });
    let batch: Row[] = [];
    let bytes = 0;
    for (const row of statement.iterate() as Iterable<unknown> as Iterable<Row>) {
      batch.push(row);
      bytes += sizeOf(row);
      if (batch.length < limits.transfer_rows && bytes < limits.transfer_bytes) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
    yield batch;
  }

  stored(value: unknown): unknown {
    return value;
  }

  async insert(table: TransferTable, rows: readonly Row[]): Promise<void> {
    if (table.name === BLOCKS) return this.#blocks.insert(rows);
    const places = table.columns.map(() => '?').join();
    const insertion = this.#db.prepare(
      `INSERT INTO ${quoted(table.name)} (${columnList(table)}) VALUES (${places})`,
    );
    this.#db.exec('BEGIN');
    for (const row of rows) insertion.run(...(row as SQLInputValue[]));
    this.#db.exec('COMMIT');
  }

  async lastNumbers(): Promise<Map<string, number>> {
    const rows = this.#db.prepare('SELECT name, seq FROM sqlite_sequence').all();
    return new Map(rows.map(({ name, seq }) => [String(name), Number(seq)]));
  }

  async continueNumbers(last: ReadonlyMap<string, number>): Promise<void> {
    await this.#blocks.flush();
    const tables = this.#db
      .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '% AUTOINCREMENT%'`)
      .all();
    for (const { name } of tables) {
      this.#db.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(name!);
      this.#db
        .prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)')
        .run(name!, last.get(String(name)) ?? 0);
    }
  }

  /** Checks a new file, and closes it when everything is on disk. Throws `StoreDamaged`. */
  finish(): void {
    const found = quickCheck(this.#db);
    if (found.length > 0) throw new StoreDamaged(this.#path, found.join(', '));
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    this.close();
  }

  /** Idempotent. */
  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }

  *#segments(): Generator<RecordedSegment> {
    const segments = this.#db.prepare(
      'SELECT agent_num, path, blocks FROM segments ORDER BY agent_num, path',
    );
    for (const { agent_num, path, blocks } of segments.iterate()) {
      yield { agent_num: Number(agent_num), path: String(path), blocks: blocks as Uint8Array };
    }
  }
}

function sizeOf(row: Row): number {
  return row.reduce<number>(
    (sum, value) => sum + (value instanceof Uint8Array || typeof value === 'string' ? value.length : 8),
    0,
  );
}
