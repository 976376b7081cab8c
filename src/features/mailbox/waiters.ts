/** Callers that wait for mail. They read the rows again each time their actor is woken. */
import { Wake } from '../../base/async.ts';
import { Slots } from '../../base/slots.ts';
import { problems } from '../../core/problem.ts';
import type { Wakes } from '../../store/wakes.ts';
import { limits } from './limits.ts';

/** Who waits: a user, or a session of an agent; null: an operator. */
export type Waiter = { user_id: string } | { session_id: string } | null;

export class Waiters {
  readonly #wakes: Wakes;
  readonly #slots = new Slots();

  constructor(wakes: Wakes) {
    this.#wakes = wakes;
  }

  /**
   * Resolves once `isThere` returns true, after `wait_ms`, or when the signal aborts. Throws `too many callers are waiting for
   * mail` if too many calls of the waiter, or of all, wait.
   */
  async wait(
    waiter: Waiter,
    actor_id: string,
    isThere: () => Promise<boolean>,
    wait_ms: number,
    signal?: AbortSignal,
  ): Promise<void> {
    const free = this.#take(waiter);
    const wake = new Wake();
    const notify = () => wake.notify();
    const unsubscribe = this.#wakes.onKey('mail', actor_id, notify);
    signal?.addEventListener('abort', notify);
    const until = performance.now() + wait_ms;
    try {
      while (!signal?.aborted && !(await isThere())) {
        const left_ms = until - performance.now();
        if (left_ms <= 0) return;
        await wake.wait(left_ms);
      }
    } finally {
      free();
      unsubscribe();
      signal?.removeEventListener('abort', notify);
    }
  }

  #take(waiter: Waiter): () => void {
    const { per_owner, total } = limits.mail_waiters;
    const full = () => problems.tooManyWaiting();
    if (waiter === null) return this.#slots.take('operator', { per_owner, total }, full);
    if ('user_id' in waiter) return this.#slots.take(`user ${waiter.user_id}`, { per_owner, total }, full);
    const bounds = { per_owner: limits.mail_waiters_per_session, total };
    return this.#slots.take(`session ${waiter.session_id}`, bounds, full);
  }
}
