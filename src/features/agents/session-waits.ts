/** Lets requests wait until a session is in a certain state. */
import { Wake } from '../../base/async.ts';
import type { Reader, Store } from '../../store/store.ts';

export class SessionWaits {
  readonly #store: Pick<Store, 'read' | 'wakes'>;

  constructor(store: Pick<Store, 'read' | 'wakes'>) {
    this.#store = store;
  }

  /**
   * Resolves to true once `check` returns true for the committed rows, and to false after `timeout_ms`. Checks first, and
   * again each time the session is woken.
   */
  async until(
    session_id: string,
    check: (reader: Reader) => Promise<boolean>,
    timeout_ms: number,
  ): Promise<boolean> {
    const wake = new Wake();
    const unsubscribe = this.#store.wakes.onKey('sessions', session_id, () => wake.notify());
    const deadline = performance.now() + timeout_ms;
    try {
      while (!(await this.#store.read(check))) {
        const remaining_ms = deadline - performance.now();
        if (remaining_ms <= 0) return false;
        await wake.wait(remaining_ms);
      }
      return true;
    } finally {
      unsubscribe();
    }
  }
}
