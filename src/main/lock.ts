/**
 * Allows one plane per data directory. The lock is an exclusive transaction on the SQLite file `plane.lock`, so the
 * kernel releases it however the process ends. `plane.json` next to it describes the process that holds the lock; it
 * is ignored unless the lock is held.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { Problem } from '../core/problem.ts';
import { limits } from './limits.ts';

const holderSchema = z.object({
  pid: z.int().positive(),
  host: z.string(),
  /** RFC 3339. */
  since: z.string(),
  /** Base URL once the listener is bound, else null. */
  url: z.string().nullable(),
  /** The certificate that a plane uses at this URL, PEM; null for plain HTTP and for nodes. Earlier versions do not write it. */
  certificate: z.string().nullable().default(null),
  /** Start time of the process in clock ticks since boot, which detects a reused pid; null except on Linux. */
  start: z.string().nullable(),
});
export type Holder = z.infer<typeof holderSchema>;

export interface PlaneLock {
  /** Records the URL of the plane, for a second start and for the CLI. */
  listening(url: string): void;
  /** Records the certificate of the public listener, PEM, so that the CLI trusts it. */
  certified(certificate: string): void;
  release(): void;
}

/** Throws a Problem (`data_dir_in_use`) that names the process. */
export function lockDataDir(data_dir: string, since: string): PlaneLock {
  const database = tryLock(data_dir, 'hold');
  if (database === null) {
    const holder = readHolder(data_dir);
    const who = holder
      ? `by pid ${holder.pid} on ${holder.host} since ${holder.since}`
      : 'by another process';
    const where = holder?.url ? `, listening on ${holder.url}` : '';
    throw new Problem('conflict', 'data_dir_in_use', `data directory ${data_dir} is in use ${who}${where}`);
  }
  const path = join(data_dir, 'plane.json');
  const { pid } = process;
  let holder: Holder = { pid, host: hostname(), since, url: null, certificate: null, start: startOf(pid) };
  const write = (changes: Partial<Holder>) => {
    holder = { ...holder, ...changes };
    writeFileSync(`${path}.tmp`, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    renameSync(`${path}.tmp`, path);
  };
  write({});
  return {
    listening: (url) => write({ url }),
    certified: (certificate) => write({ certificate }),
    release: () => {
      rmSync(path, { force: true });
      if (database.isOpen) database.close();
    },
  };
}

/** The process that runs a plane on this data directory now, or null. */
export function holderOf(data_dir: string, tries: number = limits.lock_attempts): Holder | null {
  if (!existsSync(join(data_dir, 'plane.lock'))) return null;
  const database = tryLock(data_dir, 'look');
  if (database !== null) {
    database.close();
    return null;
  }
  const holder = readHolder(data_dir);
  if (holder !== null) return holder;
  if (tries > 1) {
    // The process is starting or stopping: it writes this file after taking the lock and removes it before releasing
    // it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limits.lock_retry_ms);
    return holderOf(data_dir, tries - 1);
  }
  throw new Problem('conflict', 'data_dir_in_use', `data directory ${data_dir} is in use by another process`);
}

/** Whether the process that wrote `plane.json` still exists; a new one may not have written its own file yet. */
export function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch {
    return false;
  }
  return holder.start === null || holder.start === startOf(holder.pid);
}

/** A check holds a shared lock for a moment; a process that takes the lock waits for that. */
function tryLock(data_dir: string, purpose: 'hold' | 'look'): DatabaseSync | null {
  const hold = purpose === 'hold';
  const database = new DatabaseSync(join(data_dir, 'plane.lock'), {
    timeout: hold ? limits.lock_wait_ms : 0,
  });
  try {
    database.exec('PRAGMA journal_mode = MEMORY');
    if (hold) database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    else database.exec('SELECT count(*) FROM sqlite_schema');
    return database;
  } catch (error) {
    database.close();
    if (/locked|busy/i.test((error as Error).message)) return null;
    throw error;
  }
}

function readHolder(data_dir: string): Holder | null {
  try {
    const holder = holderSchema.parse(JSON.parse(readFileSync(join(data_dir, 'plane.json'), 'utf8')));
    return isAlive(holder) ? holder : null;
  } catch {
    return null;
  }
}

function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
