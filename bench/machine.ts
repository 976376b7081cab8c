/** Memory and processor time of processes, as the kernel reports them. Linux only. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { TICKS_PER_SECOND } from '../src/base/proc.ts';

const MIB = 1024 * 1024;

export function describeMachine(): string {
  const model = cpus()[0]?.model ?? 'unknown processor';
  return `${cpus().length} × ${model}, Linux, Node ${process.version}`;
}

/** The processor time of a process in seconds; 0 if it has ended. */
export function cpuSeconds(pid: number): number {
  return ticks(pid, [11, 12]) / TICKS_PER_SECOND;
}

/** Like `cpuSeconds`, for a process and all its descendants, including ended ones that their parents waited for. */
export function cpuSecondsWithChildren(pid: number): number {
  const all = withDescendants([pid]).map((one) => ticks(one, [11, 12, 13, 14]));
  return all.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
}

/** The sum of these fields of `/proc/<pid>/stat`, counted from the one after the name. */
function ticks(pid: number, fields: readonly number[]): number {
  const text = read(`/proc/${pid}/stat`);
  const values = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.reduce((sum, field) => sum + Number(values[field] ?? 0), 0);
}

export function rssMib(pid: number): number {
  return kib(`/proc/${pid}/status`, 'VmRSS') / 1024;
}

/** The peak resident memory since `forgetPeak`. */
export function peakMib(pid: number): number {
  return kib(`/proc/${pid}/status`, 'VmHWM') / 1024;
}

export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** The proportional set size of a process in bytes: its own memory, and its share of shared memory. */
export function pssBytes(pid: number): number {
  return (kib(`/proc/${pid}/smaps_rollup`, 'Pss') * MIB) / 1024;
}

/** These processes and all their descendants. */
export function withDescendants(pids: readonly number[]): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = read(`/proc/${name}/stat`);
    const parent = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found = new Set<number>();
  const add = (pid: number) => {
    if (found.has(pid)) return;
    found.add(pid);
    for (const child of children.get(pid) ?? []) add(child);
  };
  for (const pid of pids) add(pid);
  return [...found];
}

function kib(path: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(read(path))?.[1] ?? 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
