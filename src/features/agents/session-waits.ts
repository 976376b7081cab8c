/** Lets requests wait until a session is in a certain state. */
import type { Reader, Store } from '../../store/store.ts';

export class SessionWaits {
  readonly #store: Pick<Store, 'read'>;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store;
  }

  /** Call this after each commit that changed the session. */
  changed(session_id: string): void {
    for (const wake of this.#waiting.get(session_id) ?? []) wake();
  }

  /**
   * Resolves to true once `check` returns true for the committed rows, and to false after `timeout_ms`. Checks first, and
   * again after each change of the session.
   */
  async until(
    session_id: string,
    check: (reader: Reader) => Promise<boolean>,
    timeout_ms: number,
  ): Promise<boolean> {
    const waiters = this.#waiting.get(session_id) ?? new Set();
    this.#waiting.set(session_id, waiters);
    const deadline = performance.now() + timeout_ms;
    try {
      for (;;) {
        let wake = () => {};
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        waiters.add(wake);
        try {
          if (await this.#store.read(check)) return true;
          const remaining_ms = deadline - performance.now();
          if (remaining_ms <= 0) return false;
          const timer = setTimeout(wake, remaining_ms);
          await woken;
          clearTimeout(timer);
        } finally {
          waiters.delete(wake);
        }
      }
    } finally {
      if (waiters.size === 0) this.#waiting.delete(session_id);
    }
  }
}
