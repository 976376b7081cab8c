/**
 * Finds processes that an agent left behind: those with the examination's cookie in their environment (Linux), or in
 * the process group of an agent that it started. They are ended by pid, and each is checked again before its signal.
 */
import { sleep } from '../../base/async.ts';
import {
  hasProc,
  isAlive,
  type ProcessRef,
  type ProcessStat,
  readAllStats,
  readStat,
  readVariable,
  runningThread,
} from '../../base/proc.ts';
import { limits } from '../limits.ts';

export const COOKIE = 'SVC_DOCTOR_ID';

/** Never notified; used for a blocking wait that only the process's exit may interrupt. */
const never = new Int32Array(new SharedArrayBuffer(4));

export class Leftovers {
  readonly #cookie: string;
  readonly #leaders: ProcessRef[] = [];

  constructor(cookie: string) {
    this.#cookie = cookie;
  }

  /** From now on, includes the group of an agent that was just started. */
  watch(pid: number): void {
    const stat = readStat(pid);
    if (stat) this.#leaders.push({ pid, start: stat.start });
  }

  /** Also finds agents that are still running. */
  find(): ProcessStat[] {
    const all = readAllStats();
    const starts = new Map(all.map(({ pid, start }) => [pid, start]));
    // While a group exists, the kernel does not reuse its leader's pid. So a different leader means that the old
    // group is empty.
    const groups = new Set(
      this.#leaders.filter(({ pid, start }) => (starts.get(pid) ?? start) === start).map(({ pid }) => pid),
    );
    return all.filter(
      (stat) =>
        !stat.is_dead &&
        stat.pid !== process.pid &&
        (groups.has(stat.pgrp) || groups.has(stat.sid) || (hasProc && this.#hasCookie(stat))),
    );
  }

  #hasCookie(stat: ProcessStat): boolean {
    return readVariable(runningThread(stat), COOKIE) === this.#cookie;
  }

  /** The processes that remain after a short time in which they may exit on their own. */
  async remaining(signal: AbortSignal): Promise<ProcessStat[]> {
    const until_ms = performance.now() + limits.doctor_leftover_ms;
    for (;;) {
      const found = this.find();
      if (found.length === 0 || performance.now() > until_ms || signal.aborted) return found;
      await sleep(limits.doctor_leftover_poll_ms, signal);
    }
  }

  /** Repeats until none is left, because they may fork meanwhile. Synchronous, so that it can run last in a process. */
  kill(): void {
    const until_ms = performance.now() + limits.doctor_leftover_ms;
    for (let found = this.find(); found.length > 0; found = this.find()) {
      for (const ref of found) {
        try {
          if (isAlive(ref)) process.kill(ref.pid, 'SIGKILL');
        } catch {
          // Already gone, or not permitted to signal.
        }
      }
      if (performance.now() > until_ms) return;
      Atomics.wait(never, 0, 0, limits.doctor_kill_poll_ms);
    }
  }
}
