/** One way into the service, with somebody at it who sends nonsense. */
export interface EntryPoint {
  name: EntryPointName;
  /** Sends what the seed says, and answers how many cases it was. Throws a `Finding`. */
  batch(seed: number): Promise<number>;
  close(): Promise<void>;
}

export const entryPointNames = ['http', 'raw', 'grpc', 'acp'] as const;
export type EntryPointName = (typeof entryPointNames)[number];

/** What must not be, and how to see it again. */
export class Finding extends Error {
  constructor(entry: EntryPointName, seed: number, what: string) {
    super(`${what}\nagain: npm run fuzz -- --only ${entry} --seed ${seed} --batches 1`);
    this.name = 'Finding';
  }
}

/** Runs `fn` on every item, some at a time. */
export async function eachOf<T>(
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
