/** Opens the database of a plane: the embedded one in the data directory, or the one that `database.url` names. */
import { existsSync, readFileSync } from 'node:fs';
import { readFile, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Clock, rfc3339 } from '../base/clock.ts';
import { syncFolder, writeFileAtomic } from '../base/files.ts';
import type { Logger } from '../base/log.ts';
import { subkey } from '../base/secret-key.ts';
import type { Config } from '../core/config.ts';
import { describeDatabase, parseDatabaseUrl } from '../core/database-url.ts';
import { invalid, Problem } from '../core/problem.ts';
import { moveState, setMoveState } from '../store/move-state.ts';
import { boundDataDir } from '../store/plane-id.ts';
import type { Member } from '../store/postgres/member.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import { DATABASE_FILE } from './data-dir.ts';

/** Exists in a data directory that is used with PostgreSQL, and names the database. */
const MARK_FILE = 'postgresql';

export interface DatabaseContext {
  config: Config;
  data_dir: string;
  /** Of the data directory. */
  key: Uint8Array;
  clock: Clock;
  log: Logger;
  /** Called at most once if the plane must stop, because another one has taken over the database. */
  onLost(problem: Problem): void;
  /** How other planes see this one; null if it does not share the database. */
  member: Member | null;
}

/** The database on a server for people, without the password; null for the embedded one. */
export function serverDatabase(config: Config): string | null {
  const url = config.get('database.url');
  const address = url === null ? url : parseDatabaseUrl(url);
  return address === null || typeof address === 'string' ? null : describeDatabase(address);
}

/** Throws a Problem if the plane's data is not in the data directory. `instead` says what to do for PostgreSQL. */
export function requireEmbeddedDatabase(config: Config, instead: string): void {
  const data_dir = config.get('data_dir');
  const marked = markedDatabase(data_dir);
  // With `database.url` set, but not moved yet, the data is still here.
  const is_embedded = marked === null && existsSync(join(data_dir, DATABASE_FILE));
  const database = is_embedded ? null : (marked ?? serverDatabase(config));
  if (database === null) return;
  const message = `the data is in the PostgreSQL database ${database}: ${instead}`;
  throw new Problem('conflict', 'backup_refused', message);
}

/** The PostgreSQL database that the data directory was used with last; null if there was none. */
export function markedDatabase(data_dir: string): string | null {
  const path = join(data_dir, MARK_FILE);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null;
}

/** From now on, the data directory is used with this PostgreSQL database. Idempotent. */
export function markDatabase(data_dir: string, database: string): Promise<void> {
  return writeFileAtomic(join(data_dir, MARK_FILE), `${database}\n`);
}

/** From now on, the data directory is used with its embedded database. */
export async function removeMark(data_dir: string): Promise<void> {
  await unlink(join(data_dir, MARK_FILE));
  await syncFolder(data_dir);
}

/**
 * The caller closes the store. Throws a Problem if the database cannot be used, or if it or the data directory belongs to
 * another one.
 */
export async function openDatabase(context: DatabaseContext): Promise<Store> {
  const { config, data_dir, log } = context;
  const url = config.get('database.url');
  if (url !== null) return openServerDatabase(context, url);
  const marked = markedDatabase(data_dir);
  if (marked !== null) {
    throw invalid(
      `data directory ${data_dir} is used with the PostgreSQL database ${marked}: set database.url, or delete ${join(data_dir, MARK_FILE)} to use the embedded database`,
      'invalid_config',
    );
  }
  return openSqlite({ path: join(data_dir, DATABASE_FILE), log });
}

/** Identifies the data directory with this key, or those of several planes that share the key and the database. */
export function dataDirFingerprint(key: Uint8Array): string {
  return Buffer.from(subkey(key, 'data directory of the database')).toString('hex');
}

/** The certificates that the server's certificate is verified with. Throws a Problem if the file cannot be read. */
export async function readDatabaseCa(config: Config): Promise<string | undefined> {
  const path = config.get('database.ca');
  if (path === null) return undefined;
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw invalid(`database.ca ${path} cannot be read: ${error.code ?? error.message}`, 'invalid_config');
  });
}

async function openServerDatabase(context: DatabaseContext, url: string): Promise<Store> {
  const { config, data_dir, clock, log, onLost, member } = context;
  const database = serverDatabase(config)!;
  // Loaded on demand, because most planes do not need the driver.
  const { openPostgres } = await import('../store/postgres/postgres.ts');
  const { continueAfterMove } = await import('../store/postgres/place.ts');
  const marked = markedDatabase(data_dir);
  if (marked === null && existsSync(join(data_dir, DATABASE_FILE))) {
    throw invalid(
      `data directory ${data_dir} is used with its embedded database: run svc move-to-postgres, or move ${join(data_dir, DATABASE_FILE)} away to begin without its data`,
      'invalid_config',
    );
  }
  const store = await openPostgres({
    ...{ url, ca: await readDatabaseCa(config), connections: config.get('database.pool'), log },
    holder: `pid ${process.pid} on ${hostname()} since ${rfc3339(clock.now())}`,
    onClaimLost: onLost,
    ...(member !== null && { member }),
  });
  try {
    await finishMove(store, marked === database, database);
    await bind(store, context);
    if (marked !== database) await markDatabase(data_dir, database);
    const synchronous = config.get('database.synchronous');
    if (await continueAfterMove(store, { now_ms: clock.now(), synchronous })) {
      log.warn('the database was restored or moved: the numbers of events continue far ahead');
    }
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Throws a Problem if the data is elsewhere. `is_marked`: the data directory is used with this database, so the move to it was
 * interrupted at the very end.
 */
async function finishMove(store: Store, is_marked: boolean, database: string): Promise<void> {
  const state = await moveState(store);
  if (state === null) return;
  if (state === 'arriving' && is_marked) return setMoveState(store, null);
  const message =
    state === 'left'
      ? `the data of the database ${database} was moved to an embedded database: unset database.url`
      : `a move to the database ${database} was interrupted: run svc move-to-postgres again`;
  throw new Problem('conflict', 'data_moved', message);
}

/**
 * Binds the database to the data directory, where the sessions of this machine are: with another one, a plane would report
 * them as lost.
 */
async function bind(store: Store, { config, key, data_dir }: DatabaseContext): Promise<void> {
  const fingerprint = dataDirFingerprint(key);
  if ((await boundDataDir(store, fingerprint)) === fingerprint) return;
  const solution =
    config.get('cluster.listen') === null
      ? 'start svc with that one'
      : 'copy secret.key from the data directory of another control plane';
  throw new Problem(
    'conflict',
    'wrong_data_dir',
    `the database belongs to a data directory with another secret.key than ${data_dir}: ${solution}`,
  );
}
