/** File helpers: atomic writes and private folders. */
import { randomBytes } from 'node:crypto';
import { lstatSync, rmdirSync, unlinkSync } from 'node:fs';
import { chmod, lstat, mkdir, open, opendir, rename, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { MIB } from './limits.ts';

/** Writes a file atomically: temporary file, fsync, rename, fsync of the folder. */
export async function writeFileAtomic(path: string, data: string | Uint8Array, mode = 0o600): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  const file = await open(temporary, 'wx', mode);
  try {
    await file.writeFile(data);
    await file.sync();
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Syncs a folder, so that changes of its entries survive a power failure. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}

/** Makes a path absolute that may be relative to `base`, or start with `~/` for `home`. */
export function absolutePath(path: string, base: string, home: string): string {
  return path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : resolve(base, path);
}

/** Whether there is something at the path, even a link that leads nowhere. */
export function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

/** Creates a folder that only the current user can enter, or restricts an existing one. */
export async function makePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}

/** The names of the first entries of a folder, in any order, without reading the rest. Throws if it cannot be read. */
export async function firstNames(folder: string, max: number): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(folder, { bufferSize: Math.min(max, 32) })) {
    if (names.push(name) >= max) break;
  }
  return names;
}

/** Files up to this size are deleted in less than 1 ms. */
const REMOVE_SYNC_BYTES = 1 * MIB;

/**
 * Deletes a folder in which there are usually no other files than these. `files`: names relative to it. Synchronous,
 * because a hop to the thread pool costs about 15 µs of processor time, and a system call for a small file 1 to 5 µs. Returns
 * false if anything is left: other files, or large ones, whose deletion would block the event loop. Follows no links in the
 * folder; it must not be one that others can replace. Idempotent.
 */
export function removeKnown(folder: string, files: readonly string[]): boolean {
  for (const name of files) {
    const path = join(folder, name);
    ignoreErrors(() => {
      if (lstatSync(path).blocks * 512 <= REMOVE_SYNC_BYTES) unlinkSync(path);
    });
  }
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

/** Runs a step and ignores its errors. */
export function ignoreErrors(step: () => void): void {
  try {
    step();
  } catch {}
}

/** Whether the system has too few descriptors, processes or memory at the moment, whatever the call was about. */
export function isExhausted(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** Whether a disk is full or fails, so that nothing can be stored on it now. */
export function isDiskError(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EIO', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '');
}
