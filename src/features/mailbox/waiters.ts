/** Callers that wait for mail. They read the rows again each time their actor is woken. */
import { Wake } from '../../base/async.ts';
import { problems } from '../../core/problem.ts';
import type { Wakes } from '../../store/wakes.ts';
import { limits } from './limits.ts';

export class Waiters {
  readonly #wakes: Wakes;
  #count = 0;

  constructor(wakes: Wakes) {
    this.#wakes = wakes;
  }

  /**
   * Resolves once `isThere` returns true, after `wait_ms`, or when the signal aborts. Throws `too many callers are waiting for
   * mail`.
   */
  async wait(
    actor_id: string,
    isThere: () => Promise<boolean>,
    wait_ms: number,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.#count >= limits.mail_waiters_max) throw problems.tooManyWaiting();
    const wake = new Wake();
    const notify = () => wake.notify();
    const unsubscribe = this.#wakes.onKey('mail', actor_id, notify);
    signal?.addEventListener('abort', notify);
    this.#count++;
    const until = performance.now() + wait_ms;
    try {
      while (!signal?.aborted && !(await isThere())) {
        const left_ms = until - performance.now();
        if (left_ms <= 0) return;
        await wake.wait(left_ms);
      }
    } finally {
      this.#count--;
      unsubscribe();
      signal?.removeEventListener('abort', notify);
    }
  }
}
