/**
 * Moves the data of a plane between the embedded database and PostgreSQL, while the plane is stopped. The copy is complete and
 * compared with the original before the data directory is marked, and the mark decides which database is used. So after an
 * interruption, the original is still used, and the move can be repeated. Agents keep running: their sessions are in the data
 * directory, and their offsets are a part of the copy.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { rfc3339, systemClock } from '../base/clock.ts';
import { syncFolder } from '../base/files.ts';
import { silentLog } from '../base/log.ts';
import { loadSecretKey } from '../base/secret-key.ts';
import type { Moved } from '../cli/context.ts';
import type { Config } from '../core/config.ts';
import { Problem } from '../core/problem.ts';
import { SegmentFileBlocks } from '../events/segment-transfer.ts';
import { own_meta, setMoveState } from '../store/move-state.ts';
import { planeId } from '../store/plane-id.ts';
import { PostgresCopy } from '../store/postgres/copy.ts';
import { openPostgres } from '../store/postgres/postgres.ts';
import type { PostgresServer, Store } from '../store/store.ts';
import { createTargetFile, openSourceFile } from '../store/transfer/sqlite.ts';
import { type TransferProgress, transfer } from '../store/transfer/transfer.ts';
import { DATABASE_FILE, prepareDataDir } from './data-dir.ts';
import {
  dataDirFingerprint,
  markDatabase,
  markedDatabase,
  openDatabase,
  readDatabaseCa,
  removeMark,
  serverDatabase,
} from './database.ts';
import { lockDataDir } from './lock.ts';

const LOG_FOLDER = 'log';
/** Files of a data directory that a move to the embedded database replaces. */
const REPLACED = /^(svc\.db(-wal|-shm|-boot)?|log)$/;
/** Folders of moves that were interrupted. */
const STAGING = /^move-[A-Za-z0-9]{6}$/;

export interface MoveOptions {
  config: Config;
  signal: AbortSignal;
  onProgress(progress: TransferProgress): void;
}

/**
 * Copies the embedded database to the empty one of `database.url`, which is used from then on. Throws a Problem if the plane is
 * running, or if one of the databases is not suitable, and `TransferFailed` if the copy is not correct.
 */
export function moveToPostgres(options: MoveOptions): Promise<Moved> {
  return whileStopped(options, async (data_dir, database) => {
    const path = join(data_dir, DATABASE_FILE);
    const marked = markedDatabase(data_dir);
    if (marked !== null) throw refused(`data directory ${data_dir} already uses PostgreSQL: ${marked}`);
    if (!existsSync(path)) throw refused(`${data_dir} contains no database`);
    const fingerprint = dataDirFingerprint(await loadSecretKey(join(data_dir, 'secret.key')));
    const log_folder = join(data_dir, LOG_FOLDER);
    const source = await openSourceFile(path, new SegmentFileBlocks(log_folder), silentLog);
    try {
      const server = await serverOf(options.config);
      const holder = `svc move-to-postgres, pid ${process.pid} on ${hostname()}`;
      const store = await openPostgres({ ...server, log: silentLog, connections: 2, holder });
      try {
        const rows = await withCopy(store, server, async (target) => {
          if (!(await target.isEmpty())) {
            if (!(await target.isUnfinishedMove(fingerprint)))
              throw refused(`the database ${database} already contains data: use an empty one`);
            await target.clear();
          }
          const copied = await transfer({ ...options, source, target, own_meta });
          await target.commit(fingerprint);
          return copied;
        });
        await markDatabase(data_dir, database);
        await setMoveState(store, null);
        return { data_dir, database, rows: sum(rows), aside: null };
      } finally {
        await store.close();
      }
    } finally {
      source.close();
    }
  });
}

/**
 * Copies the database of `database.url` to the embedded one, which is used from then on. An older embedded database is kept
 * in another folder. Throws like `moveToPostgres`.
 */
export function moveToEmbedded(options: MoveOptions): Promise<Moved> {
  return whileStopped(options, async (data_dir, database) => {
    const { config } = options;
    if (markedDatabase(data_dir) === null)
      throw refused(`data directory ${data_dir} is not used with PostgreSQL`);
    const key = await loadSecretKey(join(data_dir, 'secret.key'));
    const staging = await mkdtemp(join(data_dir, 'move-'));
    const lost = new AbortController();
    const context = { config, data_dir, key, clock: systemClock, log: silentLog, member: null };
    const store = await openDatabase({ ...context, onLost: (problem) => lost.abort(problem) });
    try {
      if ((await store.read(planeId)) === undefined)
        throw refused(`the database ${database} contains no data of svc`);
      const signal = AbortSignal.any([options.signal, lost.signal]);
      const target = createTargetFile(
        join(staging, DATABASE_FILE),
        new SegmentFileBlocks(join(staging, LOG_FOLDER)),
      );
      try {
        const server = await serverOf(config);
        const rows = await withCopy(store, server, (source) =>
          transfer({ ...options, signal, source, target, own_meta }),
        );
        target.finish();
        const aside = await replaceFiles(data_dir, staging);
        await removeMark(data_dir);
        await setMoveState(store, 'left');
        return { data_dir, database, rows: sum(rows), aside };
      } finally {
        target.close();
      }
    } finally {
      await store.close();
      await rm(staging, { recursive: true, force: true });
    }
  });
}

/** Runs `move` while no plane uses the data directory. */
async function whileStopped(
  { config }: MoveOptions,
  move: (data_dir: string, database: string) => Promise<Moved>,
): Promise<Moved> {
  const database = serverDatabase(config);
  if (database === null) throw refused('database.url is not set: set it to the PostgreSQL database');
  if (!existsSync(config.get('data_dir'))) throw refused(`${config.get('data_dir')} does not exist`);
  const data_dir = await prepareDataDir(config.get('data_dir'));
  const lock = lockDataDir(data_dir, rfc3339(systemClock.now()));
  try {
    for (const name of await readdir(data_dir)) {
      if (STAGING.test(name)) await rm(join(data_dir, name), { recursive: true, force: true });
    }
    return await move(data_dir, database);
  } finally {
    lock.release();
  }
}

/** Runs `use` while no other plane can take over the database of the store. Nothing remains that it does not commit. */
async function withCopy<T>(
  store: Store,
  server: PostgresServer,
  use: (copy: PostgresCopy) => Promise<T>,
): Promise<T> {
  const copy = await PostgresCopy.open(server);
  try {
    // The claim cannot change while the copy is open. This fails if it changed before.
    await store.write(planeId);
    return await use(copy);
  } finally {
    await copy.close();
  }
}

/** Replaces the embedded database by the staged one. Returns where the old files are, or null if there were none. */
async function replaceFiles(data_dir: string, staging: string): Promise<string | null> {
  const old = (await readdir(data_dir)).filter((name) => REPLACED.test(name));
  const time = rfc3339(systemClock.now()).replace(/[:.]/g, '-');
  const aside = join(data_dir, `before-move-${time}`);
  if (old.length > 0) await mkdir(aside, { mode: 0o700 });
  for (const name of old) await rename(join(data_dir, name), join(aside, name));
  for (const name of [LOG_FOLDER, DATABASE_FILE]) {
    if (existsSync(join(staging, name))) await rename(join(staging, name), join(data_dir, name));
  }
  await syncFolder(data_dir);
  return old.length > 0 ? aside : null;
}

async function serverOf(config: Config): Promise<PostgresServer> {
  return { url: config.get('database.url')!, ca: await readDatabaseCa(config) };
}

function sum(rows: ReadonlyMap<string, number>): number {
  return [...rows.values()].reduce((all, count) => all + count, 0);
}

function refused(message: string): Problem {
  return new Problem('conflict', 'move_refused', message);
}
