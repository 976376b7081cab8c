/** The database of a test: SQLite, or PostgreSQL if the test runs in the project `postgres` of `vitest.config.ts`. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestAPI, test } from 'vitest';
import type { Store } from '../store/store.ts';
import { openTestDatabase } from './empty-sqlite.ts';

export const on_postgres = process.env.SVC_TEST_DATABASE === 'postgres';

/** A test of what only SQLite does, or with fake timers, in a file that runs on both. */
export const sqliteTest = (on_postgres ? () => {} : test) as TestAPI;

/**
 * Opens the database of a test in its folder. It is empty the first time. The caller closes the store. Other tests use the
 * database once it is closed, so open no store for a folder after one for another folder.
 */
export async function openTestStore(folder: string): Promise<Store> {
  if (!on_postgres) return openTestDatabase(join(folder, 'svc.db'));
  const { openReusedDatabase } = await import('./reused-databases.ts');
  return openReusedDatabase(folder);
}

/** A second connection to the SQLite database of a store, which can only read. Throws if the database is on a server. */
export function openSecondConnection({ files }: Pick<Store, 'files'>): DatabaseSync {
  if (files === null) throw new Error('the database has no files');
  return new DatabaseSync(files.path, { readOnly: true });
}
