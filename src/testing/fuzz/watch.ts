/** What must hold of a program whatever is sent to it: it goes on, answers, tells of no fault of its own, and stays small. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const RSS_MIB_MAX = 768;
/** Words of faults that nobody foresaw. */
const FAULTS = /"level":"(error|fatal)"|uncaught|unhandled|^\s+at .+:\d+:\d+\)?$/im;

export interface Watchable {
  readonly isRunning: boolean;
  readonly pid: number;
  readonly log: string;
}

export class Watch {
  readonly #program: Watchable;
  readonly #answers: () => Promise<unknown>;
  #seen: number;

  /** `answers` rejects when the program does not answer as it should. */
  constructor(program: Watchable, answers: () => Promise<unknown>) {
    this.#program = program;
    this.#answers = answers;
    this.#seen = program.log.length;
  }

  /** Throws with what does not hold. */
  async check(): Promise<void> {
    const program = this.#program;
    if (!program.isRunning) throw new Error(`the program ended: ${program.log.slice(-2_000)}`);
    await this.#answers();
    const said = program.log.slice(this.#seen);
    this.#seen = program.log.length;
    const fault = said.split('\n').find((line) => FAULTS.test(line));
    if (fault !== undefined) throw new Error(`the log tells of a fault: ${fault.slice(0, 2_000)}`);
    // What is garbage is given back in its own time.
    for (let tries = 20; (await rssMib(program.pid)) > RSS_MIB_MAX; tries--) {
      if (tries === 0) throw new Error(`more than ${RSS_MIB_MAX} MiB are resident`);
      await sleep(500);
    }
  }
}

/** Memory that is resident, in MiB. Linux only; elsewhere 0. */
export async function rssMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}
