/**
 * PostgreSQL databases that the tests of a worker use one after another. Creating a database takes longer than most tests, and
 * connecting to one as long as many transactions. Emptying one takes a few milliseconds.
 */
import pg from 'pg';
import { vi } from 'vitest';
import { silentLog } from '../base/log.ts';
import { checkNotInBody } from '../store/body.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import type { NumberedTable } from '../store/settled-numbers.ts';
import type { IngestBatch, Reader, Store, Tx, WriteOptions } from '../store/store.ts';
import type { Wakes } from '../store/wakes.ts';
import { createDatabase } from './postgres.ts';

/** Few, because the server starts a process for each: two that read, and two that write. */
const CONNECTIONS = 4;
/** Tables whose rows an open store needs. */
const KEPT = ['gate', 'plane_claim', 'schema_version'];

interface ReusedDatabase {
  /** Stays open for the next test. */
  store: Store;
  /** The folder of the test that uses it, or used it last. */
  folder: string;
  /** How many tests use it. */
  users: number;
  /** Deletes all rows. */
  clear(): Promise<unknown>;
}

const databases: ReusedDatabase[] = [];

/** Opens the database of a folder, or an empty one. It may be used for another folder once the store is closed. */
export async function openReusedDatabase(folder: string): Promise<Store> {
  const own = databases.find((database) => database.folder === folder);
  const free = own ?? databases.find(({ users }) => users === 0);
  const database = free ?? (await create());
  database.users++;
  if (database !== own) {
    database.folder = folder;
    try {
      await database.clear();
    } catch (error) {
      database.folder = '';
      database.users--;
      throw error;
    }
  }
  return new LentStore(database);
}

async function create(): Promise<ReusedDatabase> {
  const { url } = await createDatabase();
  const store = await openPostgres({ url, log: silentLog, connections: CONNECTIONS });
  // The worker ends although the connection is open.
  const pool = new pg.Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true });
  await pool.query(await clearFunction(pool));
  const clear = () => pool.query('SELECT clear_for_test()');
  const database = { store, folder: '', users: 0, clear };
  databases.push(database);
  return database;
}

/**
 * Creates a function that deletes all rows and lets numbers begin with 1. It runs no triggers, so it checks no foreign keys, and
 * can delete the rows of tables to which rows can only be added.
 */
async function clearFunction(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string; kind: string }>(
    `SELECT relname AS name, relkind AS kind FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') AND relname <> ALL ($1)`,
    [KEPT],
  );
  const namesOf = (kind: string) => rows.filter((row) => row.kind === kind).map(({ name }) => name);
  const statements = [
    ...namesOf('r').map((name) => `DELETE FROM "${name}";`),
    ...namesOf('S').map((name) => `PERFORM setval('"${name}"', 1, false);`),
  ];
  return `CREATE FUNCTION clear_for_test() RETURNS void LANGUAGE plpgsql SET session_replication_role = replica
    AS $$ BEGIN ${statements.join(' ')} END $$`;
}

/** The store of a database for one test. `close` waits for the test's transactions, and the store stays open for the next test. */
class LentStore implements Store {
  readonly files = null;
  readonly source: Store['source'];
  readonly server: Store['server'];
  readonly wakes: Wakes = {
    on: (topic, listener) => this.#keep(this.#store.wakes.on(topic, listener)),
    onKey: (topic, key, listener) => this.#keep(this.#store.wakes.onKey(topic, key, listener)),
  };
  readonly #database: ReusedDatabase;
  readonly #store: Store;
  /** `Reader.database`: not that of the store, because caches would have rows of earlier tests. */
  readonly #identity = {};
  readonly #running = new Set<Promise<unknown>>();
  readonly #unsubscribe: (() => void)[] = [];
  #closing: Promise<void> | null = null;

  constructor(database: ReusedDatabase) {
    this.#database = database;
    this.#store = database.store;
    this.source = this.#store.source;
    this.server = this.#store.server;
  }

  read<T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    return this.#run(() => this.#store.read((reader) => fn(this.#identify(reader))));
  }

  cachedRead<T>(_key: string, fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    return this.read(fn);
  }

  write<T>(fn: (tx: Tx) => Promise<T> | T, options?: WriteOptions): Promise<T> {
    return this.#run(() => this.#store.write((tx) => fn(this.#identify(tx)), options));
  }

  settledNumbers(table: NumberedTable) {
    return this.#run(() => this.#store.settledNumbers(table));
  }

  ingest(batch: IngestBatch) {
    return this.#run(() => this.#store.ingest(batch));
  }

  onIngested(listener: Parameters<Store['onIngested']>[0]): () => void {
    return this.#keep(this.#store.onIngested(listener));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#running);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#database.users--;
  }

  /** Unsubscribes when the test ends, if nobody did before. */
  #keep(unsubscribe: () => void): () => void {
    this.#unsubscribe.push(unsubscribe);
    return unsubscribe;
  }

  #identify<T extends Reader>(reader: T): T {
    return Object.assign(reader, { database: this.#identity });
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    checkNotInBody(this.#identity);
    if (vi.isFakeTimers())
      throw new Error('fake timers would stop a store that other tests use: use sqliteTest');
    if (this.#closing !== null) throw new Error('the store is closed');
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}
