/** Slots for work that lasts, such as streams and waiting requests, so that one owner cannot take all of them. */

export interface SlotLimits {
  per_owner: number;
  total: number;
}

/** Counts the slots that are taken, in total and by each owner. */
export class Slots {
  readonly #by_owner = new Map<string, number>();
  #taken = 0;

  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a slot and returns a function that frees it, which the caller calls exactly once. Throws the error of
   * `createFullError` if the owner, or all owners together, have no slot left.
   */
  take(
    owner: string,
    { per_owner, total }: SlotLimits,
    createFullError: (full: 'owner' | 'total') => Error,
  ): () => void {
    const taken = this.#by_owner.get(owner) ?? 0;
    if (taken >= per_owner) throw createFullError('owner');
    if (this.#taken >= total) throw createFullError('total');
    this.#taken++;
    this.#by_owner.set(owner, taken + 1);
    return () => {
      this.#taken--;
      const remaining = this.#by_owner.get(owner)! - 1;
      if (remaining > 0) this.#by_owner.set(owner, remaining);
      else this.#by_owner.delete(owner);
    };
  }
}
