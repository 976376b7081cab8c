/**
 * Keeps a folder open, so that the folder that was checked is the one that is used. If agents can write to a path, it
 * may lead elsewhere a moment later; a descriptor cannot. Without `/proc`, descriptors have no path (on macOS, which
 * has no confinement either), so this module checks the path and then uses it.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProc } from '../../base/proc.ts';

/** Linux's O_PATH, which Node does not export: a location in the file system, without permission to read it. */
const O_PATH = 0o10000000;
const FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export class HeldFolder {
  /** Absolute; contained no links when it was opened. */
  readonly path: string;
  /** `<device>:<inode>`, as `stat -c %d:%i` prints it. No other folder can have this id while this one is open. */
  readonly id: string;
  readonly #handle: FileHandle | null;
  /** The folders from the root down to this one. */
  readonly #chain: readonly BigIntStats[];

  constructor(path: string, handle: FileHandle | null, chain: readonly BigIntStats[]) {
    this.path = path;
    this.#handle = handle;
    this.#chain = chain;
    this.id = idOf(chain.at(-1)!);
  }

  /** A path that leads to this folder even if it is renamed; valid only in this process. */
  get fd_path(): string {
    return this.#handle ? `/proc/self/fd/${this.#handle.fd}` : this.path;
  }

  /** Opens a folder inside this one. This one stays open. Throws the same errors as `holdFolder`. */
  async enter(name: string): Promise<HeldFolder> {
    const path = join(this.path, name);
    if (!this.#handle) return checkPath(path);
    return hold(join(this.fd_path, name), path, this.#chain);
  }

  /**
   * True if only root and the user `uid` can create entries in this folder, or rename or replace it or a folder above it.
   */
  isWritableOnlyBy(uid: number): boolean {
    return this.#chain.every(
      (folder, n) =>
        (folder.uid === 0n || folder.uid === BigInt(uid)) &&
        // In a sticky folder such as /tmp, users may add entries, but not change other users' entries.
        ((folder.mode & 0o022n) === 0n || ((folder.mode & 0o1000n) !== 0n && n < this.#chain.length - 1)),
    );
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

/**
 * Opens a real, absolute path segment by segment without following links. Throws an errno error: ELOOP or ENOTDIR if a
 * segment is a link or not a folder, ENOENT if one is missing.
 */
export async function holdFolder(path: string): Promise<HeldFolder> {
  if (!hasProc) return checkPath(path);
  let held = await hold('/', '/', []);
  for (const segment of path.split('/').filter(Boolean)) {
    const outer = held;
    held = await outer.enter(segment).finally(() => outer.close());
  }
  return held;
}

/** Opens the folder at `from`, whose path is `path`, below the folders of `chain`. */
async function hold(from: string, path: string, chain: readonly BigIntStats[]): Promise<HeldFolder> {
  const handle = await open(from, FLAGS);
  try {
    return new HeldFolder(path, handle, [...chain, await handle.stat({ bigint: true })]);
  } catch (error) {
    // On a file system that has gone away. A handle that is never closed ends the process when it is collected.
    await handle.close();
    throw error;
  }
}

/** The id of whatever is at a path, even if it is a link; null if nothing is there. */
export async function identify(path: string): Promise<string | null> {
  const info = await lstat(path, { bigint: true }).catch(() => null);
  return info && idOf(info);
}

function idOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

async function checkPath(path: string): Promise<HeldFolder> {
  const info = await lstat(path, { bigint: true });
  if (!info.isDirectory() || (await realpath(path)) !== path) {
    throw Object.assign(new Error(`${path} is not the real path of a folder`), { code: 'ENOTDIR' });
  }
  return new HeldFolder(path, null, [info]);
}
