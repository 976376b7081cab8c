/**
 * Holds a folder open, so that what was looked at is what gets used. A path that agents can write to may lead elsewhere a
 * moment later; a descriptor cannot. Where there is no `/proc` to name descriptors by (macOS, which has no confinement
 * either), it looks at the path and gives back the path.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { hasProc } from '../base/proc.ts';

/** Linux's O_PATH, which Node has no name for: a place in the file system, not permission to read it. */
const O_PATH = 0o10000000;
const FLAGS = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

export class HeldFolder {
  /** Absolute, without links when it was opened. */
  readonly path: string;
  /** `<device>:<inode>`, as `stat -c %d:%i` prints it. No other folder has it while this one is held. */
  readonly id: string;
  readonly #handle: FileHandle | null;
  /** From the root down to this one. */
  readonly #line: readonly BigIntStats[];

  constructor(path: string, handle: FileHandle | null, line: readonly BigIntStats[]) {
    this.path = path;
    this.#handle = handle;
    this.#line = line;
    this.id = idOf(line.at(-1)!);
  }

  /** A path to this very folder, for this process alone. */
  get fd_path(): string {
    return this.#handle ? `/proc/self/fd/${this.#handle.fd}` : this.path;
  }

  /** A folder in this one; this one stays open. Throws as `holdFolder` does. */
  async enter(name: string): Promise<HeldFolder> {
    const path = join(this.path, name);
    if (!this.#handle) return lookAt(path);
    const handle = await open(join(this.fd_path, name), FLAGS);
    return new HeldFolder(path, handle, [...this.#line, await handle.stat({ bigint: true })]);
  }

  /** True when nobody but root and `uid` can rename or replace this folder or one above it, or make entries in it. */
  isClosedTo(others: { but: number }): boolean {
    return this.#line.every(
      ({ uid, mode }, n) =>
        (uid === 0n || uid === BigInt(others.but)) &&
        // In a sticky folder, such as /tmp, others may add entries, but not touch those of somebody else.
        ((mode & 0o022n) === 0n || ((mode & 0o1000n) !== 0n && n < this.#line.length - 1)),
    );
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }
}

/**
 * Opens a real, absolute path segment by segment and follows no link on the way. Throws ELOOP or ENOTDIR where a segment
 * is a link or no folder, ENOENT where one is missing.
 */
export async function holdFolder(path: string): Promise<HeldFolder> {
  if (!hasProc) return lookAt(path);
  const root = await open('/', FLAGS);
  let held = new HeldFolder('/', root, [await root.stat({ bigint: true })]);
  for (const segment of path.split('/').filter(Boolean)) {
    const outer = held;
    held = await outer.enter(segment).finally(() => outer.close());
  }
  return held;
}

/** The identity of whatever is at a path, a link included; null when nothing is. */
export async function identify(path: string): Promise<string | null> {
  const info = await lstat(path, { bigint: true }).catch(() => null);
  return info && idOf(info);
}

function idOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

async function lookAt(path: string): Promise<HeldFolder> {
  const info = await lstat(path, { bigint: true });
  if (!info.isDirectory() || (await realpath(path)) !== path) {
    throw Object.assign(new Error(`${path} is not the real path of a folder`), { code: 'ENOTDIR' });
  }
  return new HeldFolder(path, null, [info]);
}
