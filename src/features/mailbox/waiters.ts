/** Callers that wait for mail. A wake-up carries no data: the caller reads the rows again. */
import { Wake } from '../../base/async.ts';
import { problems } from '../../core/problem.ts';
import { limits } from './limits.ts';

export class Waiters {
  readonly #wakes = new Map<string, Set<Wake>>();
  #count = 0;

  wake(actor_id: string): void {
    for (const wake of this.#wakes.get(actor_id) ?? []) wake.notify();
  }

  /** Resolves once `isThere` returns true, after `wait_ms`, or when the signal aborts. Throws `too many callers are waiting for mail`. */
  async wait(
    actor_id: string,
    isThere: () => Promise<boolean>,
    wait_ms: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#count >= limits.mail_waiters_max) throw problems.tooManyWaiting();
    const wake = new Wake();
    const wakes = this.#wakes.get(actor_id) ?? new Set();
    this.#wakes.set(actor_id, wakes.add(wake));
    this.#count++;
    const until = performance.now() + wait_ms;
    try {
      while (!signal.aborted && !(await isThere())) {
        const left_ms = until - performance.now();
        if (left_ms <= 0) return;
        await wake.wait(left_ms, signal);
      }
    } finally {
      this.#count--;
      wakes.delete(wake);
      if (wakes.size === 0) this.#wakes.delete(actor_id);
    }
  }
}
