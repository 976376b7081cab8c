/**
 * What an agent left behind: processes that bear the examination's cookie in their environment (Linux), or that are in the
 * process group of an agent that it started. They are ended by pid, each looked at again before its signal.
 */
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import {
  hasProc,
  isAlive,
  type ProcessRef,
  type ProcessStat,
  readAllStats,
  readStat,
  readVariable,
} from '../base/proc.ts';

export const COOKIE = 'SVC_DOCTOR_ID';

/** Wakes never: for a wait that holds up everything, which only the end of a process may do. */
const never = new Int32Array(new SharedArrayBuffer(4));

export class Leftovers {
  readonly #cookie: string;
  readonly #leaders: ProcessRef[] = [];

  constructor(cookie: string) {
    this.#cookie = cookie;
  }

  /** The group of an agent that was just started counts from now on. */
  watch(pid: number): void {
    const stat = readStat(pid);
    if (stat) this.#leaders.push({ pid, start: stat.start });
  }

  /** Agents that still run are found too. */
  find(): ProcessStat[] {
    const all = readAllStats();
    const starts = new Map(all.map(({ pid, start }) => [pid, start]));
    // A group keeps its leader's pid from being given out, so another leader there means that ours is empty and gone.
    const groups = new Set(
      this.#leaders.filter(({ pid, start }) => (starts.get(pid) ?? start) === start).map(({ pid }) => pid),
    );
    return all.filter(
      ({ pid, pgrp, sid, state }) =>
        state !== 'Z' &&
        state !== 'X' &&
        pid !== process.pid &&
        (groups.has(pgrp) || groups.has(sid) || (hasProc && readVariable(pid, COOKIE) === this.#cookie)),
    );
  }

  /** What is still there after a moment in which it may end by itself. */
  async settle(signal: AbortSignal): Promise<ProcessStat[]> {
    const until_ms = performance.now() + limits.doctor_leftover_ms;
    for (;;) {
      const found = this.find();
      if (found.length === 0 || performance.now() > until_ms || signal.aborted) return found;
      await sleep(limits.doctor_leftover_look_ms, signal);
    }
  }

  /** Until nobody is left, forks of the moment too. Synchronous, so that it can be the last thing that a process does. */
  kill(): void {
    const until_ms = performance.now() + limits.doctor_leftover_ms;
    for (let found = this.find(); found.length > 0; found = this.find()) {
      for (const ref of found) {
        try {
          if (isAlive(ref)) process.kill(ref.pid, 'SIGKILL');
        } catch {
          // Gone, or not ours to signal.
        }
      }
      if (performance.now() > until_ms) return;
      Atomics.wait(never, 0, 0, limits.doctor_kill_look_ms);
    }
  }
}
