/** A random number generator with a seed (mulberry32), so that a fuzzer's cases are reproducible. */
export class Rng {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.below(256)));
  }

  /** Between 0 and `max` results of `make`. */
  some<T>(max: number, make: () => T): T[] {
    return Array.from({ length: this.below(max + 1) }, make);
  }
}

/** A copy of the bytes in which a few are changed, removed, inserted, repeated or cut off. */
export function garbled(rng: Rng, bytes: Buffer, changes_max = 4): Buffer {
  let result = Buffer.from(bytes);
  for (let remaining = 1 + rng.below(changes_max); remaining > 0; remaining--) {
    const at = rng.below(result.length + 1);
    const length = 1 + rng.below(8);
    switch (rng.below(5)) {
      case 0:
        if (at < result.length) result[at] = rng.below(256);
        break;
      case 1:
        result = Buffer.concat([result.subarray(0, at), result.subarray(at + length)]);
        break;
      case 2:
        result = Buffer.concat([result.subarray(0, at), rng.bytes(length), result.subarray(at)]);
        break;
      case 3:
        result = Buffer.concat([result.subarray(0, at + length), result.subarray(at)]);
        break;
      default:
        if (rng.chance(0.3)) result = result.subarray(0, at);
    }
  }
  return result;
}
