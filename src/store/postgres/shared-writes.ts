/**
 * Lets serializable writes that wait for the only slot share one transaction, in which each is a part: it sees what earlier
 * parts wrote, and is rolled back alone if it throws. There is only one slot if writes conflict, for example because they
 * change the same run. Sharing saves each of them the beginning, the commit and the sync of a transaction of its own. If the
 * shared transaction fails, each write runs in its own.
 *
 * A shared transaction excludes all other writes. It keeps the locks of all its parts, in any order, so it could otherwise
 * wait for a write that waits for it.
 */
import { Problem } from '../../core/problem.ts';
import type { ServerCounts } from '../store.ts';
import { isConflict } from './errors.ts';
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

  /** See `Writes.run`. Writes begin in the order of the calls. */
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
      let end_ms: number | undefined;
      for (const write of writes) {
        outcomes.push(await tx.part(write));
        // The first one has waited for the writes in progress.
        end_ms ??= performance.now() + limits.shared_ms_max;
        const next =
          writes.length < limits.shared_writes_max && performance.now() < end_ms && this.#queue.shift();
        if (next) writes.push(next);
      }
      return outcomes;
    };
    this.#counts.transactions++;
    try {
      const outcomes = await this.#writes.attempt({ isolation: 'SERIALIZABLE', body, alone: true }, endSlot);
      outcomes.forEach((outcome, i) => {
        if ('error' in outcome) writes[i]!.reject(outcome.error);
        else writes[i]!.resolve(outcome.value);
      });
    } catch (error) {
      // Each other write would also fail, or may have been committed.
      if (error instanceof Problem) for (const { reject } of writes) reject(error);
      else {
        if (isConflict(error)) this.#counts.conflicts += writes.length;
        for (const write of writes) this.#runAlone(write);
      }
    }
  }
}
