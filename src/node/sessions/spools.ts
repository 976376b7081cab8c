/**
 * Reads spools by offset, keeps a limited number of them open, and frees the disk space of committed output by punching
 * holes.
 */
import { closeSync, fstatSync, read, readSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { KIB, MIB } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import type { Launcher } from '../processes/launcher-client.ts';
import type { Tools } from '../processes/tools.ts';
import { READ, type SessionFiles, spoolNames } from './session-files.ts';

const readAsync = promisify(read);

interface Spool {
  fd: number;
  users: number;
  dropped: boolean;
}

/** New bytes are in the page cache, so reads of up to this size are synchronous (why: `removeKnown`): 3 µs instead of 18. */
const SYNC_READ_BYTES = 64 * KIB;

export class Spools {
  readonly #open = new Map<string, Spool>();
  readonly #punched = new Map<string, number>();
  readonly #launcher: Launcher;
  readonly #tools: Tools;
  readonly #keep_bytes: number;
  readonly #log: Logger;
  readonly #scratch = Buffer.allocUnsafeSlow(SYNC_READ_BYTES);

  constructor(launcher: Launcher, tools: Tools, keep_bytes: number, log: Logger) {
    this.#launcher = launcher;
    this.#tools = tools;
    this.#keep_bytes = keep_bytes;
    this.#log = log;
  }

  /**
   * See `Node.read`: returns up to `max` bytes from `from`, none at the current end. Throws `output_lost` if they were
   * deleted.
   */
  async read(
    files: SessionFiles,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    if (from < this.#firstByte(files, stream)) throw problems.outputLost();
    const spool = this.#acquire(files, stream);
    if (!spool) {
      if (from > 0) throw problems.outputLost();
      return new Uint8Array();
    }
    try {
      if (!into || max < SYNC_READ_BYTES) {
        const first = into ?? this.#scratch;
        const got = readSync(spool.fd, first, 0, Math.min(max, SYNC_READ_BYTES), from);
        if (got > 0 ? got < SYNC_READ_BYTES : from === 0) {
          const bytes = first.subarray(0, got);
          return into ? bytes : Buffer.from(bytes);
        }
      }
      const { size } = fstatSync(spool.fd);
      if (from > size) throw problems.outputLost();
      const length = Math.min(max, size - from);
      if (length === 0) return new Uint8Array();
      const buffer = into ?? Buffer.allocUnsafe(length);
      const { bytesRead } = await readAsync(spool.fd, buffer, 0, length, from);
      return buffer.subarray(0, bytesRead);
    } finally {
      spool.users--;
      if (spool.dropped && spool.users === 0) closeSync(spool.fd);
    }
  }

  /**
   * Frees the blocks of everything before `offset`, which is committed, except for the last `keep_bytes`. Idempotent.
   * Does nothing without `fallocate`, or if the file system does not support holes.
   */
  async release(files: SessionFiles, stream: StreamName, offset: number): Promise<void> {
    const { fallocate } = this.#tools;
    const until = Math.floor((offset - this.#keep_bytes) / MIB) * MIB;
    if (!fallocate || until <= 0) return;
    const path = files.spool_paths[stream];
    const done = this.#firstByte(files, stream);
    if (until - done < Math.min(limits.spool_punch_bytes, this.#keep_bytes)) return;
    this.#punched.set(path, until);
    await writeFile(`${path}.from`, `${until}\n`, { mode: 0o600 });
    const result = await this.#launcher.run(
      [fallocate, '--punch-hole', '--offset', '0', '--length', String(until), path],
      { cwd: '/', env: { LC_ALL: 'C' }, output_bytes_max: 4 * KIB, timeout_ms: limits.git_timeout_ms },
    );
    if (result.code === 0) return;
    // The file system may not support holes. The bytes then stay readable.
    this.#punched.set(path, done);
    await writeFile(`${path}.from`, `${done}\n`, { mode: 0o600 });
    this.#log.debug(
      { path, error: result.stderr.toString().trim() },
      'cannot free the disk space of a spool',
    );
  }

  /** Closes the spools of a session that is being deleted. */
  forget(files: SessionFiles): void {
    for (const path of Object.values(files.spool_paths)) {
      this.#punched.delete(path);
      this.#drop(path);
    }
  }

  close(): void {
    for (const path of [...this.#open.keys()]) this.#drop(path);
  }

  /**
   * The offset of the first byte that still exists. It is stored before a hole is punched, because holes read as zeros.
   */
  #firstByte(files: SessionFiles, stream: StreamName): number {
    const path = files.spool_paths[stream];
    let from = this.#punched.get(path);
    if (from === undefined) {
      // One byte more than a valid file has, so that the end of a longer one does not match.
      const text = files.readTail(`${spoolNames[stream]}.from`, 17);
      from = /^\d{1,15}\n$/.test(text) ? Number(text) : 0;
      this.#punched.set(path, from);
    }
    return from;
  }

  #acquire(files: SessionFiles, stream: StreamName): Spool | null {
    const path = files.spool_paths[stream];
    const spool = this.#open.get(path) ?? openSpool(files, stream);
    if (!spool) return null;
    spool.users++;
    // The map is ordered by time of last use.
    this.#open.delete(path);
    this.#open.set(path, spool);
    for (const old of this.#open.keys()) {
      if (this.#open.size <= limits.spools_open_max) break;
      this.#drop(old);
    }
    return spool;
  }

  #drop(path: string): void {
    const spool = this.#open.get(path);
    if (!spool) return;
    this.#open.delete(path);
    spool.dropped = true;
    if (spool.users === 0) closeSync(spool.fd);
  }
}

/** Null if there is no regular file. */
function openSpool(files: SessionFiles, stream: StreamName): Spool | null {
  let fd: number;
  try {
    fd = files.open(spoolNames[stream], READ);
  } catch (error) {
    // Other errors, such as running out of descriptors, do not mean that the file is missing.
    const { code } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(code ?? '')) return null;
    throw error;
  }
  if (fstatSync(fd).isFile()) return { fd, users: 0, dropped: false };
  closeSync(fd);
  return null;
}
