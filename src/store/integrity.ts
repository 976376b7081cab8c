/**
 * Whether a database can be trusted: before it is opened (its write-ahead log), while it is opened after an unclean stop
 * (small ones whole, large ones later, in the background) and what SQLite's complaints mean to a client.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { Problem, problems } from '../domain/problem.ts';
import { StoreDamaged } from './store.ts';
import { inspectWal } from './wal.ts';

/** Throws `StoreDamaged` when committed transactions are missing from the write-ahead log; true after an unclean stop. */
export function checkWal(path: string): boolean {
  const wal = inspectWal(path);
  if (!wal) return false;
  const { sound_frames, committed_frames } = wal;
  // After a reboot the index may know of commits that were never synced, and so never acknowledged.
  if (committed_frames !== null && committed_frames > sound_frames && sameBoot(path)) {
    throw new StoreDamaged(
      path,
      `its write-ahead log holds ${committed_frames} committed frames, of which ${committed_frames - sound_frames} cannot be read`,
    );
  }
  return true;
}

/** Notes the boot in which the database is open. Lost with the power, it says `another boot`, which is right. */
export function rememberBoot(path: string): void {
  const boot = bootId();
  if (boot === null) return;
  try {
    writeFileSync(`${path}-boot`, boot, { mode: 0o600 });
  } catch {
    // Without the note a damaged log may pass for a torn one; that is no reason not to start on a full disk.
  }
}

function sameBoot(path: string): boolean {
  try {
    return readFileSync(`${path}-boot`, 'utf8') === bootId();
  } catch {
    return false;
  }
}

/** Null where the system does not say. */
function bootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}

/** The problems that `quick_check` finds, none in a sound database. */
export function quickCheck(db: DatabaseSync): string[] {
  try {
    const rows = db.prepare('PRAGMA quick_check(20)').all();
    const found = rows.map((row) => String(Object.values(row)[0]));
    return found.length === 1 && found[0] === 'ok' ? [] : found;
  } catch (error) {
    if (isDamage(error)) return [(error as Error).message];
    throw error;
  }
}

export function databaseBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const FULL = 13;
const IOERR = 10;
const IOERR_SHMSIZE = IOERR | (19 << 8);
const CORRUPT = 11;
const NOTADB = 26;

function code(error: unknown): number | null {
  const errcode = (error as { errcode?: unknown } | null)?.errcode;
  return typeof errcode === 'number' ? errcode : null;
}

export function isDamage(error: unknown): boolean {
  const number = code(error);
  return number !== null && ((number & 0xff) === CORRUPT || (number & 0xff) === NOTADB);
}

/** A failure of the database itself as a client may see it; null for anything else, for example a broken constraint. */
export function storageProblem(error: unknown): Problem | null {
  const number = code(error);
  if (number === null) return null;
  if (number === FULL || number === IOERR_SHMSIZE) return problems.diskSpace();
  if ((number & 0xff) === IOERR)
    return new Problem('unavailable', 'storage_failed', 'storage does not answer');
  if (isDamage(error)) return new Problem('unavailable', 'storage_damaged', 'storage is damaged');
  return null;
}
