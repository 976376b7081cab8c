/**
 * Reads and writes the files of a session directory. All of them are untrusted input, because an agent that runs as the
 * service's user could have written them. So sizes are limited, links and FIFOs are rejected, and formats are checked.
 *
 * Small files on a local disk are read and written synchronously (why: `removeKnown`), which took a step of a chain from 31.5
 * to 28 ms of processor time. Callers that handle many sessions take turns (`nextTurn`).
 */
import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ignoreErrors, removeKnown } from '../../base/files.ts';
import type { ProcessRef } from '../../base/proc.ts';
import { type StreamName, streamNames } from '../../core/event.ts';
import { boundFact } from '../../core/fact-bounds.ts';
import type { SessionFact, SessionView } from '../../core/node.ts';
import type { Launch, StreamSizes } from '../../core/session.ts';
import { limits } from '../limits.ts';
import { SESSION_VERSION } from './shell-scripts.ts';

export const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** `launch.json`: the request to start the session, without the values of its environment. */
export interface LaunchFile {
  version: number;
  boot_id: string;
  /** The folder of the session's cgroup; null: none. */
  cgroup: string | null;
  launch: SessionView['launch'];
}

/** `handle`: the processes that the wrapper started. */
export interface HandleFile {
  boot_id: string;
  main: ProcessRef;
  /** The init of the main process's pid namespace, with its pid outside the namespace; null without a pid namespace. */
  init: ProcessRef | null;
  wrapper: ProcessRef;
  keeper: ProcessRef;
  pumps: Record<StreamName, ProcessRef>;
  feeder: ProcessRef | null;
  /** The main process could not be moved into its cgroup. */
  no_cgroup: boolean;
  /** This keeper replaced a killed one. */
  is_replacement: boolean;
}

/** `spawn`: what the inner shell reports about the folder and the program. */
export type SpawnFile =
  | { ok: true; program: string }
  | { ok: false; reason: 'workdir_refused' | 'spawn_failed'; message: string };

/** `exit`: how the command ended, as the wrapper saw it. */
export interface ExitFile {
  /** The status that a shell reports: 128 + signal for a killed process. */
  status: number;
  /** Seconds since boot; null if unknown. */
  uptime_s: number | null;
  /** Unix ms. */
  at_ms: number;
  /** What the wrapper's shell printed. It names the signal that killed the command, if any. */
  shell_output: string;
}

export const spoolNames: Record<StreamName, string> = { stdout: 'out', stderr: 'err' };

const PIPES = ['alive', 'gate', 'out', 'err', 'in', 'ctl', 'wake'];

/** The files of most sessions at their end. */
const FILES = [
  ...['launch.json', 'claimed', 'handle', 'spawn', 'stdin', 'exit', 'wait.err', 'out', 'err'],
  ...['facts', 'ended'],
];

const sync = promisify(fsync);

/** Flags for writing. Opening never waits, even if an agent has put a FIFO in place of the file. */
const APPEND = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;
/** Flags for reading, also without waiting. */
export const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const REPLACE = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK;

export class SessionFiles {
  readonly dir: string;
  /** Built once, because building and hashing them for each read takes 2 % of the time of an output line. */
  readonly spool_paths: Readonly<Record<StreamName, string>>;

  constructor(dir: string) {
    this.dir = dir;
    this.spool_paths = { stdout: this.path(spoolNames.stdout), stderr: this.path(spoolNames.stderr) };
  }

  path(name: string): string {
    return join(this.dir, name);
  }

  /** Opens a file of the directory; see `restore`. Throws errno errors. */
  open(name: string, flags: number | string): number {
    try {
      return openSync(this.path(name), flags, 0o600);
    } catch (error) {
      this.restore(name, error);
      return openSync(this.path(name), flags, 0o600);
    }
  }

  /**
   * If opening a file failed for lack of permissions, restores them; throws other errors. An agent that runs as the
   * service's user can take permissions away from files and folders. The service owns them too, so it can undo that.
   */
  restore(name: string, error: unknown): void {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error;
    const path = this.path(name);
    for (const folder of [this.dir, dirname(path)]) ignoreErrors(() => chmodSync(folder, 0o700));
    ignoreErrors(() => chmodSync(path, 0o600));
  }

  /** The stream whose spool has this name; undefined for other files. */
  streamOf(name: string | Buffer | null): StreamName | undefined {
    return streamNames.find((stream) => spoolNames[stream] === name);
  }

  /**
   * Creates the directory atomically, by renaming it into place. `environment`: see `environmentFile`. Throws errno
   * errors, such as ENOSPC. Returns false if the session was created before and lost its `launch.json`, for example in a
   * power failure. The file is written again then, with an unknown boot, and nothing else is changed.
   */
  static create(
    dir: string,
    temporary: string,
    launch: LaunchFile,
    environment: string,
    careful_pumps: boolean,
  ): boolean {
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(join(temporary, 'pipes'), { recursive: true, mode: 0o700 });
    const add = (name: string, data: string | Buffer) =>
      writeAll(openSync(join(temporary, name), REPLACE, 0o600), data);
    add('launch.json', `${JSON.stringify(launch)}\n`);
    // The wrapper writes the exit status in place, so that a full disk cannot lose it.
    add('exit', `${' '.repeat(126)}\n`);
    add('wait.err', `${' '.repeat(1022)}\n`);
    add('stdin', '');
    add('environment', environment);
    // If this file exists, the pump is a careful one. Its blocks must be allocated before the disk is full.
    const piece = Buffer.alloc(limits.careful_piece_bytes);
    if (careful_pumps) {
      for (const name of Object.values(spoolNames)) add(`${name}.piece`, piece);
    }
    try {
      renameSync(temporary, dir);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
      add('launch.json', `${JSON.stringify({ ...launch, boot_id: '' })}\n`);
      renameSync(join(temporary, 'launch.json'), join(dir, 'launch.json'));
      rmSync(temporary, { recursive: true });
      return false;
    }
  }

  /** Deletes a directory that no process uses any longer. Returns false if something is left: see `removeKnown`. */
  static remove(dir: string): boolean {
    removeKnown(join(dir, 'pipes'), PIPES);
    return removeKnown(dir, FILES);
  }

  /**
   * Null if the file is missing or malformed. Throws an Error if a newer version of svc has written it: the session exists,
   * but this version may misread its files.
   */
  readLaunch(): LaunchFile | null {
    const file = parseJson(this.#read('launch.json')) as LaunchFile | null;
    if (typeof file?.version === 'number' && file.version > SESSION_VERSION) {
      throw new Error('a newer version of svc started the session; upgrade svc');
    }
    const launch = file?.launch;
    const strings = [
      launch?.session_id,
      launch?.agent_id,
      launch?.plane_id,
      launch?.workdir,
      launch?.agent_name,
    ];
    if (!file || !launch || !strings.every((value) => typeof value === 'string')) return null;
    if (!Array.isArray(launch.argv) || !launch.argv.every((value) => typeof value === 'string')) return null;
    if (!Array.isArray(launch.env_keys) || typeof file.version !== 'number') return null;
    if (typeof launch.stdin !== 'boolean') return null;
    return file;
  }

  /** Null if the file is missing, incomplete or malformed. */
  readHandle(): HandleFile | null {
    const text = this.#read('handle');
    if (!text?.endsWith('\nend\n')) return null;
    const lines = new Map<string, string>();
    for (const line of text.split('\n')) {
      const space = line.indexOf(' ');
      if (space < 0) lines.set(line, '');
      else lines.set(line.slice(0, space), line.slice(space + 1));
    }
    const [main, wrapper, keeper] = ['main', 'wrapper', 'keeper'].map((name) => parseRef(lines.get(name)));
    const [stdout, stderr] = ['pump_out', 'pump_err'].map((name) => parseRef(lines.get(name)));
    if (!main || !wrapper || !keeper || !stdout || !stderr) return null;
    return {
      boot_id: lines.get('boot') ?? '',
      main,
      init: parseRef(lines.get('init')),
      wrapper,
      keeper,
      pumps: { stdout, stderr },
      feeder: parseRef(lines.get('feeder')),
      no_cgroup: lines.has('nocgroup'),
      is_replacement: lines.has('again'),
    };
  }

  /** Null if the file is missing, incomplete or malformed. */
  readSpawn(): SpawnFile | null {
    const match = /^(run|fail workdir_refused|fail spawn_failed) (.*)\n/s.exec(this.#read('spawn') ?? '');
    const [, result, rest = ''] = match ?? [];
    if (!result) return null;
    if (result === 'run') return { ok: true, program: rest.split('\n', 1)[0] ?? '' };
    const message = rest.replace(/[\x00-\x1f\x7f]+/g, ' ').slice(0, 500);
    return {
      ok: false,
      reason: result === 'fail workdir_refused' ? 'workdir_refused' : 'spawn_failed',
      message,
    };
  }

  /** Null if the command has not ended, or the file is missing or malformed. */
  readExit(): ExitFile | null {
    const match = /^(\d{1,3}) (\d+(?:\.\d+)?) end/.exec(this.#read('exit') ?? '');
    if (!match) return null;
    const at_ms = statSync(this.path('exit')).mtimeMs;
    const uptime_s = Number(match[2]) || null;
    const shell_output = (this.#read('wait.err') ?? '').trim();
    return { status: Number(match[1]), uptime_s, at_ms: Math.round(at_ms), shell_output };
  }

  /** All recorded facts in order, bounded: an earlier version listed every process. Skips incomplete lines. */
  readFacts(): SessionFact[] {
    const facts: SessionFact[] = [];
    for (const line of (this.#read('facts', limits.facts_file_bytes_max) ?? '').split('\n')) {
      const fact = parseJson(line) as SessionFact | null;
      if (typeof fact?.body?.kind === 'string' && fact.number === facts.length + 1)
        facts.push(boundFact(fact));
    }
    return facts;
  }

  /**
   * Appends a fact on a new line, even if the last line is incomplete, and flushes it to disk: the plane commits its
   * number, so it must survive a crash of the machine.
   */
  async appendFact(fact: SessionFact): Promise<void> {
    const line = `\n${JSON.stringify(fact)}\n`;
    const fd = this.open('facts', APPEND);
    try {
      writeFileSync(fd, line);
      await sync(fd);
    } finally {
      closeSync(fd);
    }
  }

  /**
   * Claims the session before its wrapper can, so that the wrapper starts nothing. Returns false if it was already
   * claimed.
   */
  claim(): boolean {
    try {
      closeSync(this.open('claimed', 'wx'));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
  }

  /** False only if the directory is known to be missing. */
  directoryExists(): boolean {
    try {
      statSync(this.dir);
      return true;
    } catch (error) {
      return !isAbsent(error);
    }
  }

  /** False only if the directory is known to be missing or empty. `create` fills an empty one. */
  hasFiles(): boolean {
    try {
      return readdirSync(this.dir).length > 0;
    } catch (error) {
      return !isAbsent(error);
    }
  }

  /** Deletes the values of the environment. Idempotent. */
  dropEnvironment(): void {
    rmSync(this.path('environment'), { force: true });
  }

  /** Stores the sandbox's system call filter (`seccompFilter`). */
  putFilter(bytes: Buffer): void {
    writeAll(this.open('filter', REPLACE), bytes);
  }

  /** Whether a file exists in the directory. */
  has(name: string): boolean {
    try {
      return statSync(this.path(name), { throwIfNoEntry: false }) !== undefined;
    } catch {
      return false;
    }
  }

  /** Creates an empty file. Idempotent. */
  mark(name: string): void {
    writeAll(this.open(name, REPLACE), '');
  }

  /**
   * False once no process holds `alive` open, which means that the wrapper has ended. Other processes may still run.
   */
  isAliveHeld(): boolean {
    return this.#hasWriter('alive');
  }

  #hasReader(fifo: string): boolean {
    try {
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
      closeSync(this.open(`pipes/${fifo}`, flags));
      return true;
    } catch (error) {
      // With any other error, the FIFO may have been moved.
      return (error as NodeJS.ErrnoException).code !== 'ENXIO';
    }
  }

  #hasWriter(fifo: string): boolean {
    let fd: number;
    try {
      fd = this.open(`pipes/${fifo}`, READ);
    } catch (error) {
      if (isAbsent(error)) return false;
      throw error;
    }
    try {
      return readSync(fd, Buffer.alloc(1), 0, 1, null) > 0;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN';
    } finally {
      closeSync(fd);
    }
  }

  /** False if the kernel reports that no process has a FIFO in `pipes` open, for reading or writing. */
  isHeld(fifo: string): boolean {
    // In this order, because the check for writers reads a byte, which it must not take from a reader.
    return this.#hasReader(fifo) || this.#hasWriter(fifo);
  }

  /** Writes one line to a FIFO without blocking. Returns false if the FIFO has no reader or is full. */
  sendLine(fifo: 'ctl' | 'wake', line: string): boolean {
    try {
      const flags = constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
      const fd = this.open(`pipes/${fifo}`, flags);
      try {
        if (!fstatSync(fd).isFIFO()) return false;
        writeSync(fd, `${line}\n`);
        return true;
      } finally {
        closeSync(fd);
      }
    } catch {
      return false;
    }
  }

  /** The last bytes of a file as text; empty if it cannot be read. */
  readTail(name: string, bytes_max: number): string {
    try {
      const fd = this.open(name, READ);
      try {
        const { size } = fstatSync(fd);
        const buffer = Buffer.alloc(Math.min(size, bytes_max));
        const bytes = readSync(fd, buffer, 0, buffer.length, size - buffer.length);
        return buffer.toString('utf8', 0, bytes);
      } finally {
        closeSync(fd);
      }
    } catch {
      return '';
    }
  }

  /** A file's length in bytes; null if it is missing or cannot be examined. */
  size(name: string): number | null {
    try {
      return statSync(this.path(name), { throwIfNoEntry: false })?.size ?? null;
    } catch {
      return null;
    }
  }

  /** The lengths of both spools in bytes; 0 for a missing one. */
  sizes(): StreamSizes {
    return { stdout: this.size('out') ?? 0, stderr: this.size('err') ?? 0 };
  }

  /**
   * Null if the file is missing, not a regular file, or longer than `limits.session_file_bytes_max`. Other failures are
   * thrown, because they do not mean that the file is missing.
   */
  #read(name: string, bytes_max: number = limits.session_file_bytes_max): string | null {
    let fd: number;
    try {
      fd = this.open(name, READ);
    } catch (error) {
      if (isAbsent(error)) return null;
      throw error;
    }
    try {
      const info = fstatSync(fd);
      if (!info.isFile() || info.size > bytes_max) return null;
      return readFileSync(fd, 'utf8');
    } finally {
      closeSync(fd);
    }
  }
}

/** Writes the file and closes it. Throws errno errors, such as ENOSPC. */
function writeAll(fd: number, data: string | Buffer): void {
  try {
    writeFileSync(fd, data);
  } finally {
    closeSync(fd);
  }
}

/** The file is missing, or a link or folder is in its place. */
function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  );
}

/**
 * The launch in the form that a node may store: with names of variables but without their values, the token and the
 * step input.
 */
export function withoutSecrets(launch: Launch): SessionView['launch'] {
  const { env, actor_token: _, step_input: __, ...rest } = launch;
  return { ...rest, env_keys: Object.keys(env).sort() };
}

function parseRef(text: string | undefined): ProcessRef | null {
  const match = /^(\d{1,10}) (\S.*)$/.exec(text ?? '');
  return match?.[1] && match[2]
    ? { pid: Number(match[1]), start: match[2].replace(/\s+/g, ' ').trim() }
    : null;
}

function parseJson(text: string | null): unknown {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
