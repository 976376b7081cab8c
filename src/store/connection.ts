/**
 * A SQLite connection that runs Kysely queries. Statements are prepared once and cached; results are plain rows. The
 * connection owns the pragmas and the statement cache, and does not manage transactions.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  type Compilable,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { limits } from './limits.ts';
import type { Reader } from './store.ts';
import type { Tables } from './tables.ts';

export const kysely = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

export class Connection implements Reader {
  readonly db: DatabaseSync;
  readonly sql = kysely;
  /** By SQL text, oldest first. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.db = db;
  }

  all<Row>(query: Compilable<Row>): Row[] {
    const { sql, parameters } = query.compile();
    return this.statement(sql).all(...(parameters as SQLInputValue[])) as Row[];
  }

  get database(): object {
    return this.db;
  }

  get<Row>(query: Compilable<Row>): Row | undefined {
    const { sql, parameters } = query.compile();
    return this.statement(sql).get(...(parameters as SQLInputValue[])) as Row | undefined;
  }

  arrays(query: Compilable<unknown>): (readonly unknown[])[] {
    const { sql, parameters } = query.compile();
    const statement = this.statement(sql, true);
    return statement.all(...(parameters as SQLInputValue[])) as unknown as unknown[][];
  }

  each(query: Compilable<unknown>, visit: (row: readonly unknown[]) => boolean): void {
    const { sql, parameters } = query.compile();
    const statement = this.statement(sql, true);
    // Not in the cache meanwhile, because `visit` may run the same query.
    this.#statements.delete(cacheKey(sql, true));
    for (const row of statement.iterate(...(parameters as SQLInputValue[]))) {
      if (!visit(row as unknown as unknown[])) break;
    }
    this.#cache(cacheKey(sql, true), statement);
  }

  run(query: Compilable<unknown>): { changes: number } {
    const { sql, parameters } = query.compile();
    return { changes: Number(this.statement(sql).run(...(parameters as SQLInputValue[])).changes) };
  }

  runEach(query: Compilable<unknown>, sets: readonly (readonly unknown[])[]): void {
    const statement = this.statement(query.compile().sql);
    for (const parameters of sets) statement.run(...(parameters as SQLInputValue[]));
  }

  /** Remembers nothing: the rows may change with the next statement. */
  memo<T>(_key: string, compute: () => T): T {
    return compute();
  }

  /** Returns the prepared statement for a text, from a bounded cache that evicts the oldest. */
  statement(sql: string, returnArrays = false): StatementSync {
    const key = cacheKey(sql, returnArrays);
    const known = this.#statements.get(key);
    if (known) return known;
    const statement = this.db.prepare(sql, { returnArrays });
    this.#cache(key, statement);
    return statement;
  }

  #cache(key: string, statement: StatementSync): void {
    this.#statements.set(key, statement);
    if (this.#statements.size > limits.statements_cached_max) {
      this.#statements.delete(this.#statements.keys().next().value!);
    }
  }

  close(): void {
    this.#statements.clear();
    if (this.db.isOpen) this.db.close();
  }
}

/** A connection that only reads snapshots, and remembers values computed from the current one. */
class SnapshotConnection extends Connection {
  readonly #memos = new Map<string, unknown>();

  override memo<T>(key: string, compute: () => T): T {
    const known = this.#memos.get(key);
    if (known !== undefined) return known as T;
    const value = compute();
    if (this.#memos.size >= limits.snapshot_memos_max) this.#memos.clear();
    this.#memos.set(key, value);
    return value;
  }

  begin(): void {
    this.#memos.clear();
    this.statement('BEGIN').run();
  }
}

function cacheKey(sql: string, returnArrays: boolean): string {
  return returnArrays ? `arrays ${sql}` : sql;
}

/** Opens the only writing connection. Creates the file with access for its owner only. */
export function openWriter(path: string): Connection {
  closeSync(openSync(path, 'a', 0o600));
  const db = new DatabaseSync(path, { timeout: limits.database_busy_ms, enableForeignKeyConstraints: true });
  try {
    // The first two pragmas only take effect before the first table exists.
    db.exec(`PRAGMA page_size = ${limits.database_page_bytes}`);
    db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.exec('PRAGMA journal_mode = WAL');
    // The store syncs each group itself, on another thread.
    db.exec('PRAGMA synchronous = NORMAL');
    db.exec(`PRAGMA wal_autocheckpoint = ${limits.wal_pages_max}`);
    db.exec(`PRAGMA journal_size_limit = ${limits.wal_kept_bytes_max}`);
    db.exec(`PRAGMA cache_size = -${limits.database_cache_bytes / 1024}`);
    // Otherwise, each savepoint would keep its rollback pages in a temporary file: 15 files for one step of a run.
    db.exec('PRAGMA temp_store = MEMORY');
    // Without these, fsync on macOS does not reach the disk.
    if (process.platform === 'darwin') db.exec('PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON');
    return new Connection(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a connection that cannot write. Throws if the file does not exist. */
export function openReadOnly(path: string): SnapshotConnection {
  return new SnapshotConnection(new DatabaseSync(path, { readOnly: true, timeout: limits.database_busy_ms }));
}

/**
 * Reads from a snapshot that is kept until it is released, so that reads between two commits share one. While a
 * snapshot is held, all reads see its state, whatever is committed in the meantime.
 */
export class SnapshotReader {
  readonly #connection: SnapshotConnection;
  #kept = false;
  #pinned = false;

  constructor(connection: SnapshotConnection) {
    this.#connection = connection;
  }

  read<T>(fn: (reader: Reader) => T): T {
    if (!this.#kept) this.#begin();
    try {
      return fn(this.#connection);
    } catch (error) {
      if (!this.#pinned) this.release();
      throw error;
    }
  }

  /** Takes a new snapshot and holds it, even if a read fails, until `release`. */
  pin(): void {
    // A snapshot from before a checkpoint would prevent the log from restarting.
    this.release();
    this.#begin();
    // A snapshot begins with the first read.
    this.#connection.statement('SELECT count(*) FROM meta WHERE key = 0').get();
    this.#pinned = true;
  }

  /** Releases the snapshot. The next read sees everything that is committed by then. */
  release(): void {
    this.#kept = false;
    this.#pinned = false;
    if (this.#connection.db.isTransaction) this.#connection.statement('COMMIT').run();
  }

  close(): void {
    this.#connection.close();
  }

  #begin(): void {
    this.#connection.begin();
    this.#kept = true;
  }
}
