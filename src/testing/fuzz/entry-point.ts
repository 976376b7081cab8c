/** A fuzzer for one entry point of the service. */
export interface EntryPoint {
  name: EntryPointName;
  /** Sends a batch of cases that the seed determines. Returns their number; throws a `Finding`. */
  batch(seed: number): Promise<number>;
  close(): Promise<void>;
}

export const entryPointNames = ['http', 'raw', 'grpc', 'acp'] as const;
export type EntryPointName = (typeof entryPointNames)[number];

/** What went wrong, and the command that reproduces it. */
export class Finding extends Error {
  constructor(entry: EntryPointName, seed: number, what: string) {
    super(`${what}\nreproduce it: npm run fuzz -- --only ${entry} --seed ${seed} --batches 1`);
    this.name = 'Finding';
  }
}

/** Runs `fn` on every item, at most `at_once` at a time. */
export async function forEachConcurrently<T>(
  items: readonly T[],
  at_once: number,
  fn: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const work = async () => {
    for (let i = next++; i < items.length; i = next++) await fn(items[i]!, i);
  };
  await Promise.all(Array.from({ length: Math.min(at_once, items.length) }, work));
}
