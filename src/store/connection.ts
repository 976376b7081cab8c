/**
 * A SQLite connection. Statements are prepared once and cached; results are plain rows. The connection owns the pragmas and the
 * statement cache, and does not manage transactions.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  DummyDriver,
  Kysely,
  type LimitNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import { limits } from './limits.ts';
import type { Tables } from './tables.ts';

class QueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    super.visitLimit(node);
    // SQLite plans for the value of a LIMIT parameter, so it prepares the statement again whenever that is bound. This took
    // 50 of the 56 µs of reading an inbox. The expression hides the parameter.
    this.append(' + 0');
  }
}

export const kysely = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new QueryCompiler(),
  },
});

export class Connection {
  readonly db: DatabaseSync;
  /** By SQL text, oldest first. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.db = db;
  }

  all(sql: string, parameters: readonly unknown[]): unknown[] {
    return this.statement(sql).all(...(parameters as SQLInputValue[]));
  }

  get(sql: string, parameters: readonly unknown[]): unknown {
    return this.statement(sql).get(...(parameters as SQLInputValue[]));
  }

  arrays(sql: string, parameters: readonly unknown[]): unknown[][] {
    const statement = this.statement(sql, true);
    return statement.all(...(parameters as SQLInputValue[])) as unknown as unknown[][];
  }

  each(sql: string, parameters: readonly unknown[], visit: (row: readonly unknown[]) => boolean): void {
    const statement = this.statement(sql, true);
    // Not in the cache meanwhile, because another transaction may run the same query.
    this.#statements.delete(cacheKey(sql, true));
    for (const row of statement.iterate(...(parameters as SQLInputValue[]))) {
      if (!visit(row as unknown as unknown[])) break;
    }
    this.#cache(cacheKey(sql, true), statement);
  }

  run(sql: string, parameters: readonly unknown[]): { changes: number } {
    return { changes: Number(this.statement(sql).run(...(parameters as SQLInputValue[])).changes) };
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
export function openReadOnly(path: string): Connection {
  return new Connection(new DatabaseSync(path, { readOnly: true, timeout: limits.database_busy_ms }));
}
