/** One fault of `npm run faults`: what is done to the real program, and what came of it. */
export interface FaultRow {
  /** As on the command line. */
  number: number;
  fault: string;
  /** What is promised. */
  promised: string;
  /** How often, where nobody says otherwise. */
  usual: number;
  run(n: number, seed: number): Promise<Outcome>;
}

export interface Outcome {
  /** Cases that were tried. */
  n: number;
  /** What was not as promised, each kind once. */
  short: string[];
  measured: string[];
}

/** Counts cases, and what was not as promised. */
export class Tally {
  n = 0;
  readonly #short = new Map<string, number>();
  readonly #measured: string[] = [];

  /** One case. `what`: said when it does not hold. */
  case(holds: boolean, what: string): void {
    this.n++;
    this.must(holds, what);
  }

  /** Of the row as a whole. */
  must(holds: boolean, what: string): void {
    if (!holds) this.#short.set(what, (this.#short.get(what) ?? 0) + 1);
  }

  measure(what: string): void {
    this.#measured.push(what);
  }

  outcome(): Outcome {
    const short = [...this.#short].map(([what, times]) => (times === 1 ? what : `${what} (×${times})`));
    return { n: this.n, short, measured: this.#measured };
  }
}

/** How often each word is among the given ones, most first. */
export function counts(words: readonly string[]): string {
  const times = new Map<string, number>();
  for (const word of words) times.set(word, (times.get(word) ?? 0) + 1);
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .map(([word, count]) => `${count} × ${word}`)
    .join(', ');
}

/** `ok`, or the words of what went wrong. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'ok',
    (error: Error) => error.message,
  );
}

export function ms(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

/** So many numbers from 0. */
export function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}
