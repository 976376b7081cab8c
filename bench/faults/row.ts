/** One row of `npm run faults`: a fault that is injected into the real program, and the result. */
export interface FaultRow {
  /** Its number on the command line. */
  number: number;
  fault: string;
  /** The expected behavior. */
  expected: string;
  /** The default number of repetitions. */
  default_n: number;
  run(n: number, seed: number): Promise<Outcome>;
}

export interface Outcome {
  /** The number of cases. */
  n: number;
  /** Deviations from the expected behavior, each kind once with its count. */
  failures: string[];
  measured: string[];
}

/** Counts cases and failures. */
export class Tally {
  n = 0;
  readonly #failures = new Map<string, number>();
  readonly #measured: string[] = [];

  /** Counts one case. `what`: the failure to report unless it holds. */
  case(holds: boolean, what: string): void {
    this.n++;
    this.check(holds, what);
  }

  /** Checks something about the row as a whole. */
  check(holds: boolean, what: string): void {
    if (!holds) this.#failures.set(what, (this.#failures.get(what) ?? 0) + 1);
  }

  measure(what: string): void {
    this.#measured.push(what);
  }

  outcome(): Outcome {
    const failures = [...this.#failures].map(([what, times]) => (times === 1 ? what : `${what} (×${times})`));
    return { n: this.n, failures, measured: this.#measured };
  }
}

/** The number of occurrences of each text, the most frequent first. */
export function counts(texts: readonly string[]): string {
  const times = new Map<string, number>();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .map(([word, count]) => `${count} × ${word}`)
    .join(', ');
}

/** `ok`, or the message of the error. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: Error) => error.message,
  );
}

export function ms(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

/** The numbers from 0 to n - 1. */
export function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}
