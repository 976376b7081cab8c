/** The logs of the processes that a test started, for the error of a test that fails. */

export interface Logged {
  readonly log: string;
  readonly isRunning: boolean;
}

/** How much of each log the error contains, in characters. */
const TAIL = 3_000;

const known = new Map<Logged, string>();

/** Includes the log of a process in the error of a test that fails. */
export function reportIfFailed(name: string, process: Logged): void {
  known.set(process, name);
}

/** The ends of the logs of all processes that ran during the test. */
export function failureReport(): string {
  return [...known]
    .filter(([{ log }]) => log !== '')
    .map(([{ log }, name]) => `--- The end of the log of ${name}:\n${log.slice(-TAIL)}`)
    .join('\n');
}

/** Forgets the processes that have ended, after each test. */
export function forgetEnded(): void {
  for (const process of known.keys()) {
    if (!process.isRunning) known.delete(process);
  }
}
