/** Checks that a program keeps running and answering, and logs no internal errors; and measures how its memory grows. */
import { readFile } from 'node:fs/promises';

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
  }
}

/** The resident memory of a process in MiB; 0 on other systems than Linux. */
export async function rssMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

/**
 * How much the resident memory grew per repetition, in MiB. `samples`: one value after each repetition of the same work, at
 * least three. The first third fills caches; in the others, the lowest value counts, because garbage is collected now and then.
 */
export function growthMib(samples: readonly number[]): number {
  const third = Math.floor(samples.length / 3);
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(-third)];
  return (Math.min(...last) - Math.min(...middle)) / third;
}
