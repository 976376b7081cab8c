/** Opens an empty store on each kind of database, for tests of what every store must do. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import type { Store, Tx } from '../store/store.ts';
import { openTestDatabase } from './empty-sqlite.ts';
import { createDatabase, postgresTest } from './postgres.ts';

export interface TestStore {
  store: Store;
  /** Closes the store and deletes its database. */
  remove(): Promise<void>;
}

async function openTestSqlite(): Promise<TestStore> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-store-'));
  const store = await openTestDatabase(join(folder, 'svc.db'));
  const remove = async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { store, remove };
}

async function openTestPostgres(): Promise<TestStore> {
  const database = await createDatabase();
  const store = await openPostgres({ url: database.url, log: silentLog });
  const remove = async () => {
    await store.close();
    await database.drop();
  };
  return { store, remove };
}

/** Use `it` for the tests, which skips those whose database is missing. */
export const stores = [
  { kind: 'SQLite', open: openTestSqlite, it: test },
  { kind: 'PostgreSQL', open: openTestPostgres, it: postgresTest },
] as const;

/**
 * Opens an empty store for each of many tests about agents and their logs. In PostgreSQL, they share a database, because
 * creating one takes long. `open` is that of one of `stores`.
 */
export function emptyStores(open: () => Promise<TestStore>) {
  let opened: TestStore | undefined;
  const remove = async () => {
    await opened?.remove();
    opened = undefined;
  };
  afterAll(remove);
  return {
    async open(): Promise<Store> {
      opened ??= await open();
      return opened.store;
    },
    clear(): Promise<unknown> {
      return opened?.store.files === null ? opened.store.write(deleteLogs) : remove();
    },
  };
}

async function deleteLogs(tx: Tx): Promise<void> {
  const tables = ['segment_blocks', 'segments', 'events', 'log_drops', 'meta', 'agents'] as const;
  for (const table of tables) await tx.run(tx.sql.deleteFrom(table));
}
