/**
 * Reads process information from the system: pids with start times (a pid alone may have been reused), and the boot id.
 * Uses /proc if there is one, and `ps` otherwise. Sends no signals. If the system has too few descriptors, memory or processes
 * at the moment (`isExhausted`), all functions throw, because then nothing is known about the process.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { isExhausted } from './files.ts';
import { limits } from './limits.ts';

/** Identifies one process. Within a boot, no two processes have the same pid and start time. */
export interface ProcessRef {
  pid: number;
  /** Clock ticks since boot on Linux, the output of `ps -o lstart` elsewhere. */
  start: string;
}

export interface ProcessStat extends ProcessRef {
  ppid: number;
  pgrp: number;
  sid: number;
  /** As in `ps`: `S` sleeping, `T` stopped, `Z` zombie. A zombie may still run in other threads: see `is_dead`. */
  state: string;
  /** All its threads have ended. */
  is_dead: boolean;
  name: string;
  /**
   * Where the process has its environment in memory, which differs after every `exec` because addresses are randomized.
   * Null if it is unknown.
   */
  environment_at: string | null;
}

export const hasProc: boolean = process.platform === 'linux';

/** Clock ticks per second as /proc counts them; the same on every Linux that Node supports. */
export const TICKS_PER_SECOND = 100;

/** Parses the content of `/proc/<pid>/stat`; null if it is malformed. */
export function parseStat(text: string): ProcessStat | null {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return null;
  const fields = text.slice(close + 2).split(' ');
  const [state = '?', threads, start, from, to] = [0, 17, 19, 47, 48].map((field) => fields[field]);
  if (!start) return null;
  return {
    pid: Number(text.slice(0, open)),
    name: text.slice(open + 1, close),
    state,
    // A process whose main thread has ended is a zombie, but its other threads may still be running.
    is_dead: isZombie(state) && Number(threads) <= 1,
    ppid: Number(fields[1]),
    pgrp: Number(fields[2]),
    sid: Number(fields[3]),
    start,
    environment_at: Number(from) > 0 ? `${from}-${to}` : null,
  };
}

function isZombie(state: string): boolean {
  return state === 'Z' || state === 'X';
}

const statBuffer = Buffer.alloc(4096);
const absent = new Set(['ENOENT', 'ESRCH', 'EACCES']);

/** Returns null if there is no such process. */
export function readStat(pid: number): ProcessStat | null {
  if (hasProc) {
    let fd: number | null = null;
    try {
      fd = openSync(`/proc/${pid}/stat`, 'r');
      return parseStat(statBuffer.toString('latin1', 0, readSync(fd, statBuffer)));
    } catch (error) {
      if (absent.has((error as NodeJS.ErrnoException).code ?? '')) return null;
      throw error;
    } finally {
      if (fd !== null) closeSync(fd);
    }
  }
  return parsePs(ps(['-p', String(pid)]))[0] ?? null;
}

/** Returns every process, including zombies. */
export function readAllStats(): ProcessStat[] {
  if (!hasProc) return parsePs(ps(['-ax']));
  const stats: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (name.charCodeAt(0) > 57) continue;
    const stat = readStat(Number(name));
    if (stat) stats.push(stat);
  }
  return stats;
}

/** Without /proc, every lookup starts a process, so one table serves all lookups within this time. */
const TABLE_MS = 200;
let table: { at_ms: number; stats: Map<number, ProcessStat> } | null = null;

function lookUp(pid: number): ProcessStat | null {
  if (hasProc) return readStat(pid);
  const now = performance.now();
  if (!table || now - table.at_ms > TABLE_MS) {
    table = { at_ms: now, stats: new Map(readAllStats().map((stat) => [stat.pid, stat])) };
  }
  return table.stats.get(pid) ?? null;
}

/** The processes that a process with one thread has started and that are still its children. */
export function readChildren(pid: number): ProcessStat[] {
  if (!hasProc) return readAllStats().filter(({ ppid }) => ppid === pid);
  let pids: string;
  try {
    pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
  } catch (error) {
    if (isExhausted(error)) throw error;
    return [];
  }
  return pids
    .split(' ')
    .filter(Boolean)
    .flatMap((child) => readStat(Number(child)) ?? []);
}

/**
 * `stopped`: by a signal (SIGSTOP). `ended`: also if the process was not reaped, or if its pid now belongs to another process.
 */
export function stateOf(ref: ProcessRef): 'running' | 'stopped' | 'ended' {
  const stat = lookUp(ref.pid);
  if (stat === null || stat.start !== ref.start || stat.is_dead) return 'ended';
  return stat.state === 'T' ? 'stopped' : 'running';
}

export function isAlive(ref: ProcessRef): boolean {
  return stateOf(ref) !== 'ended';
}

export function isStopped(ref: ProcessRef): boolean {
  return stateOf(ref) === 'stopped';
}

/** An id that changes with every boot of the machine. */
export function readBootId(): string {
  if (hasProc) return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  const text = execFileSync('/usr/sbin/sysctl', ['-n', 'kern.boottime'], { encoding: 'latin1' });
  return /sec = (\d+)/.exec(text)?.[1] ?? text.trim();
}

/** Returns the command line for display: joined by spaces, shortened, without control characters. */
export function commandLine(stat: ProcessStat): string {
  let text = '';
  try {
    text = hasProc
      ? readStart(`/proc/${stat.pid}/cmdline`, limits.process_command_bytes_max).toString()
      : execFileSync('/bin/ps', ['-o', 'command=', '-p', String(stat.pid)], { encoding: 'utf8' });
  } catch (error) {
    if (isExhausted(error)) throw error;
    // The process has ended: use its name.
  }
  const printable = text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ').trim();
  return (printable || stat.name).slice(0, 200);
}

/**
 * The id of a running thread: the main thread's, or another's if the main thread has ended. Once it has ended, the
 * process's own entry in `/proc` no longer shows the environment and open files; the other thread's entry still does.
 */
export function runningThread({ pid, state }: ProcessStat): number {
  if (!isZombie(state)) return pid;
  try {
    return (
      readdirSync(`/proc/${pid}/task`)
        .map(Number)
        .find((id) => id !== pid) ?? pid
    );
  } catch (error) {
    if (isExhausted(error)) throw error;
    return pid;
  }
}

/**
 * Reads a variable of a process's initial environment; null if it is unset, unreadable, not within the first
 * `limits.process_environment_bytes_max`, or if there is no /proc.
 */
export function readVariable(pid: number, name: string): string | null {
  const bytes = readStart(`/proc/${pid}/environ`, limits.process_environment_bytes_max);
  const key = `${name}=`;
  const is_first = bytes.toString('latin1', 0, key.length) === key;
  const at = is_first ? 0 : bytes.indexOf(`\0${key}`, 0, 'latin1') + 1;
  if (!is_first && at === 0) return null;
  const end = bytes.indexOf(0, at);
  if (end < 0 && bytes.length >= limits.process_environment_bytes_max) return null;
  return bytes.toString('latin1', at + key.length, end < 0 ? bytes.length : end);
}

/** The real user id of a process; null if it has ended, or if there is no /proc. */
export function readUid(pid: number): number | null {
  const uid = /^Uid:\t(\d+)/m.exec(
    readStart(`/proc/${pid}/status`, SMALL_FILE_BYTES).toString('latin1'),
  )?.[1];
  return uid === undefined ? null : Number(uid);
}

/** The path of a process's cgroup (v2) below the mount; null if the process has ended, or if there is none. */
export function readCgroup(pid: number): string | null {
  return (
    /^0::(\/.*)$/m.exec(readStart(`/proc/${pid}/cgroup`, SMALL_FILE_BYTES).toString('latin1'))?.[1] ?? null
  );
}

/** Enough for the parts of `/proc/<pid>/status` and `/proc/<pid>/cgroup` that are read here. */
const SMALL_FILE_BYTES = 16 * 1024;

const startBuffer = Buffer.allocUnsafe(limits.process_environment_bytes_max);

/**
 * The first bytes of a file in /proc, valid until the next call; empty if the process has ended or belongs to another
 * user. `bytes_max`: at most `limits.process_environment_bytes_max`.
 */
function readStart(path: string, bytes_max: number): Buffer {
  let fd: number | null = null;
  try {
    fd = openSync(path, 'r');
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes_max; ) {
      read = readSync(fd, startBuffer, length, bytes_max - length, null);
      length += read;
    }
    return startBuffer.subarray(0, length);
  } catch (error) {
    if (isExhausted(error)) throw error;
    return startBuffer.subarray(0, 0);
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

const PS_COLUMNS = 'pid=,ppid=,pgid=,sess=,stat=,lstart=,ucomm=';

function ps(selection: string[]): string {
  try {
    return execFileSync('/bin/ps', [...selection, '-o', PS_COLUMNS], {
      encoding: 'latin1',
      env: { LC_ALL: 'C' },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch (error) {
    if (isExhausted(error)) throw error;
    // It fails if there is no such process.
    return '';
  }
}

/** `ps` has no session ids on macOS (it prints 0): use the process group instead. */
function parsePs(text: string): ProcessStat[] {
  const stats: ProcessStat[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(
      line,
    );
    if (!match) continue;
    const [, pid, ppid, pgrp, session, states, start, name] = match;
    const state = states?.[0] ?? '?';
    stats.push({
      pid: Number(pid),
      ppid: Number(ppid),
      pgrp: Number(pgrp),
      sid: Number(session) || Number(pgrp),
      state,
      is_dead: isZombie(state),
      start: start?.replace(/\s+/g, ' ') ?? '',
      name: name ?? '',
      environment_at: null,
    });
  }
  return stats;
}
