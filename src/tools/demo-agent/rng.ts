import { createHash } from 'node:crypto';

/** Choices that look random but depend only on the seed. */
export class Rng {
  readonly #origin: string;
  #drawn = 0;

  constructor(...origin: (string | number)[]) {
    this.#origin = JSON.stringify(origin);
  }

  /** A number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    const digest = createHash('sha256')
      .update(`${this.#origin} ${this.#drawn++}`)
      .digest();
    return min + (digest.readUInt32BE() % (max - min + 1));
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.between(0, choices.length - 1)]!;
  }
}
