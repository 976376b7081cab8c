/**
 * Limits how many transactions run at once, so that they rarely conflict. A conflict halves the limit and each commit raises it
 * a little, much like TCP congestion control. Running transactions that conflict at once saves no time: of sixteen, 30 % of a
 * mixed load and 90 % of the commands of one run had to run again.
 */
import { isConflict, isLockTimeout } from './errors.ts';
import { limits } from './limits.ts';

/** Ends the use of a slot. Idempotent. */
export type EndSlot = () => void;

export class Slots {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  readonly #running = new Set<object>();
  /** Those that run although others no longer wait for them. */
  readonly #overdue = new Set<object>();
  /** The limit is its integer part. */
  #allowed = 1;

  /** `max`: there are never more at once. */
  constructor(max: number) {
    this.#max = max;
  }

  /** How many transactions may run at once now. */
  get allowed(): number {
    return Math.floor(this.#allowed);
  }

  /** For the holder of a slot: whether it is the only one, and no other transaction is running. */
  get isOnly(): boolean {
    return this.allowed === 1 && this.#overdue.size === 0;
  }

  /** How many wait for a slot. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves when the caller may run a transaction, in the order of the calls. The caller ends it with the result; after
   * `limits.slot_ms_max`, others no longer wait for it.
   */
  take(): Promise<EndSlot> {
    if (this.#waiting.length === 0 && this.#running.size < this.allowed)
      return Promise.resolve(this.#begin());
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(this.#begin()));
    });
  }

  /** A transaction was committed. */
  succeeded(): void {
    this.#allowed = Math.min(this.#allowed + limits.slots_per_success, this.#max);
    this.#next();
  }

  /** A transaction failed. Whoever held a lock for too long would also have held it against fewer transactions. */
  failed(error: unknown): void {
    if (isConflict(error) && !isLockTimeout(error)) this.#allowed = Math.max(1, this.#allowed / 2);
  }

  #begin(): EndSlot {
    const slot = {};
    this.#running.add(slot);
    const timer = setTimeout(() => {
      this.#overdue.add(slot);
      this.#end(slot);
    }, limits.slot_ms_max);
    return () => {
      clearTimeout(timer);
      this.#overdue.delete(slot);
      this.#end(slot);
    };
  }

  #end(slot: object): void {
    if (this.#running.delete(slot)) this.#next();
  }

  #next(): void {
    while (this.#running.size < this.allowed && this.#waiting.length > 0) this.#waiting.shift()!();
  }
}
