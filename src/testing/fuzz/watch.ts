/** Checks that a program keeps running and answering, logs no internal errors, and uses a bounded amount of memory. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const RSS_MIB_MAX = 768;
/** Log lines of internal errors. */
const FAULT_PATTERN = /"level":"(error|fatal)"|uncaught|unhandled|^\s+at .+:\d+:\d+\)?$/im;

export interface Watchable {
  readonly isRunning: boolean;
  readonly pid: number;
  readonly log: string;
}

export class Watch {
  readonly #program: Watchable;
  readonly #answers: () => Promise<unknown>;
  #seen: number;

  /** `answers` rejects if the program does not answer correctly. */
  constructor(program: Watchable, answers: () => Promise<unknown>) {
    this.#program = program;
    this.#answers = answers;
    this.#seen = program.log.length;
  }

  /** Throws an error that describes what is wrong. */
  async check(): Promise<void> {
    const program = this.#program;
    if (!program.isRunning) throw new Error(`the program exited: ${program.log.slice(-2_000)}`);
    await this.#answers();
    const output = program.log.slice(this.#seen);
    this.#seen = program.log.length;
    const fault = output.split('\n').find((line) => FAULT_PATTERN.test(line));
    if (fault !== undefined) throw new Error(`the log reports an error: ${fault.slice(0, 2_000)}`);
    // Garbage collection may take a while.
    for (let tries = 20; (await rssMib(program.pid)) > RSS_MIB_MAX; tries--) {
      if (tries === 0) throw new Error(`the resident memory is above ${RSS_MIB_MAX} MiB`);
      await sleep(500);
    }
  }
}

/** The resident memory of a process in MiB; 0 on other systems than Linux. */
export async function rssMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}
