/**
 * Integrity checks of the database: of its write-ahead log before opening, and of its pages after an unclean stop
 * (small databases at once, large ones later in the background). Also maps SQLite's errors to problems for clients.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { readBootId } from '../base/proc.ts';
import type { Problem } from '../core/problem.ts';
import { noSpace, storageDamaged, storageFailed } from './problems.ts';
import { StoreDamaged } from './store.ts';
import { inspectWal } from './wal.ts';

/** Throws `StoreDamaged` if committed transactions are missing from the write-ahead log. True after an unclean stop. */
export function checkWal(path: string): boolean {
  const wal = inspectWal(path);
  if (!wal) return false;
  const { valid_frames, committed_frames } = wal;
  // After a reboot the index may list commits that were never synced, and therefore never acknowledged.
  if (committed_frames !== null && committed_frames > valid_frames && sameBoot(path)) {
    const unreadable = committed_frames - valid_frames;
    const found = `its write-ahead log holds ${committed_frames} committed frames, of which ${unreadable} cannot be read`;
    throw new StoreDamaged(path, found);
  }
  return true;
}

/**
 * Records the boot in which the database is open. If a power failure loses the file, that correctly counts as another
 * boot.
 */
export function rememberBoot(path: string): void {
  const boot = bootId();
  if (boot === null) return;
  try {
    writeFileSync(`${path}-boot`, boot, { mode: 0o600 });
  } catch {
    // Without the file, the next start may mistake a damaged log for a torn one. Start anyway, even if the disk is
    // full.
  }
}

function sameBoot(path: string): boolean {
  try {
    return readFileSync(`${path}-boot`, 'utf8') === bootId();
  } catch {
    return false;
  }
}

/** Null if the system does not provide one. */
function bootId(): string | null {
  try {
    return readBootId();
  } catch {
    return null;
  }
}

/** The problems that `quick_check` finds; empty if the database is sound. */
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

/** Size of the database file in bytes; 0 if it does not exist. */
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

/** Whether SQLite reports a corrupt file, or one that is not a database. */
export function isDamage(error: unknown): boolean {
  const number = code(error);
  return number !== null && ((number & 0xff) === CORRUPT || (number & 0xff) === NOTADB);
}

/** Other programs hold its lock, or there is too little memory, too few descriptors, or no right to write at the moment. */
const BLOCKED = [5, 6, 7, 8, 14, 15];

/** Whether SQLite cannot use an open database at the moment: BUSY, LOCKED, NOMEM, READONLY, CANTOPEN or PROTOCOL. */
export function isBlocked(error: unknown): boolean {
  return BLOCKED.includes((code(error) ?? 0) & 0xff);
}

/**
 * The problem that clients see for a failure of the database; null for other errors, such as a constraint violation.
 */
export function storageProblem(error: unknown): Problem | null {
  const number = code(error);
  if (number === null) return null;
  if (number === FULL || number === IOERR_SHMSIZE) return noSpace();
  if ((number & 0xff) === IOERR) return storageFailed();
  if (isDamage(error)) return storageDamaged();
  return null;
}
