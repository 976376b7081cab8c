/** What the kernel says of processes: memory and processor time. Linux only. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { TICKS_PER_SECOND } from '../src/base/proc.ts';

const MIB = 1024 * 1024;

export function describeMachine(): string {
  const model = cpus()[0]?.model ?? 'unknown processor';
  return `${cpus().length} × ${model}, Linux, Node ${process.version}`;
}

/** Seconds of processor time that a process has used; 0 when it has gone. */
export function cpuSeconds(pid: number): number {
  return ticks(pid, [11, 12]) / TICKS_PER_SECOND;
}

/** As `cpuSeconds`, of a process, all that descend from it, and those of them that have ended and were waited for. */
export function cpuSecondsWithChildren(pid: number): number {
  const all = withDescendants([pid]).map((one) => ticks(one, [11, 12, 13, 14]));
  return all.reduce((sum, one) => sum + one, 0) / TICKS_PER_SECOND;
}

/** The sum of these fields of its state, counted from the one after its name. */
function ticks(pid: number, fields: readonly number[]): number {
  const text = read(`/proc/${pid}/stat`);
  const values = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.reduce((sum, field) => sum + Number(values[field] ?? 0), 0);
}

export function rssMib(pid: number): number {
  return kib(`/proc/${pid}/status`, 'VmRSS') / 1024;
}

/** The most that was resident since `forgetPeak`. */
export function peakMib(pid: number): number {
  return kib(`/proc/${pid}/status`, 'VmHWM') / 1024;
}

export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** Bytes of memory that are a process's own, with its share of what it shares. */
export function pssBytes(pid: number): number {
  return (kib(`/proc/${pid}/smaps_rollup`, 'Pss') * MIB) / 1024;
}

/** These processes and all that descend from them. */
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
