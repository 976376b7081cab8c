/**
 * Lets serializable writes that wait for the only slot share one transaction, in which each is a part: it sees what earlier
 * parts wrote, and is rolled back alone if it throws. There is only one slot at the start, and while writes conflict, for
 * example because they change the same run. Sharing saves each of them the beginning, the commit and the sync of a
 * transaction of its own. If the shared transaction fails, each write runs in its own.
 *
 * A shared transaction excludes all other writes, also batches of output. It keeps the locks of all its parts, in any order,
 * so it could otherwise wait for a write that waits for it.
 */
import { Problem } from '../../core/problem.ts';
import type { ServerCounts } from '../store.ts';
import { canRunAgain, Disconnected } from './errors.ts';
import { limits } from './limits.ts';
import type { EndSlot } from './slots.ts';
import type { Outcome, Work, WriteTransaction } from './transaction.ts';
import type { Writes } from './writes.ts';

interface QueuedWrite extends Work<unknown> {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class SharedWrites {
  readonly #writes: Writes;
  readonly #counts: ServerCounts;
  readonly #queue: QueuedWrite[] = [];
  /** Whether something waits for a slot for the queue. */
  #starting = false;

  constructor(writes: Writes, counts: ServerCounts) {
    this.#writes = writes;
    this.#counts = counts;
  }

  /** How many writes wait for others. */
  get waiting(): number {
    return this.#queue.length + this.#writes.slots.waiting - (this.#starting ? 1 : 0);
  }

  /** See `Writes.run`. Writes begin in the order of the calls, except those that run again. */
  run<T>(work: Work<T>): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      this.#queue.push({ ...work, resolve, reject });
      if (!this.#starting) void this.#start();
    }) as Promise<T>;
  }

  async #start(): Promise<void> {
    const { slots } = this.#writes;
    this.#starting = true;
    while (this.#queue.length > 0) {
      const endSlot = await slots.take();
      const first = this.#queue.shift();
      // A shared transaction that was running may have taken what was left.
      if (first === undefined) endSlot();
      else if (this.#queue.length === 0 || !slots.isOnly) this.#runAlone(first, endSlot);
      else void this.#runTogether(first, endSlot);
    }
    this.#starting = false;
  }

  #runAlone({ resolve, reject, ...work }: QueuedWrite, endSlot?: EndSlot): void {
    this.#writes.run({ isolation: 'SERIALIZABLE', ...work }, endSlot).then(resolve, reject);
  }

  async #runTogether(first: QueuedWrite, endSlot: EndSlot): Promise<void> {
    const writes = [first];
    const body = async (tx: WriteTransaction) => {
      const outcomes: Outcome<unknown>[] = [];
      for (const write of writes) {
        outcomes.push(await tx.part(write));
        const ran_ms = tx.begun_at_ms === null ? 0 : performance.now() - tx.begun_at_ms;
        const is_open = writes.length < limits.shared_writes_max && ran_ms < limits.shared_ms_max;
        const next = is_open && this.#queue.shift();
        if (next) writes.push(next);
      }
      return outcomes;
    };
    try {
      const outcomes = await this.#writes.attempt({ isolation: 'SERIALIZABLE', body, alone: true }, endSlot);
      this.#counts.transactions++;
      outcomes.forEach((outcome, i) => {
        if ('error' in outcome) writes[i]!.reject(outcome.error);
        else writes[i]!.resolve(outcome.value);
      });
    } catch (error) {
      // The claim is lost, or it is not known whether the writes were committed: none of them may run again.
      if (error instanceof Problem) for (const { reject } of writes) reject(error);
      else {
        if (error instanceof Disconnected) this.#counts.lost += writes.length;
        else if (canRunAgain(error)) this.#counts.conflicts += writes.length;
        for (const write of writes) this.#runAlone(write);
      }
    }
  }
}
