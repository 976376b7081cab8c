/** Shared async helpers: wake-ups, sleep, turns, a queue per key. */

/** A wake-up without data. Several `notify` calls before a `wait` count as one. A lost wake-up costs only latency. */
export class Wake {
  #woken = false;
  #waiter: (() => void) | null = null;
  /** The signal that is already subscribed to. Every `wait` passes a signal, but usually the same one. */
  #signal: AbortSignal | undefined;

  notify(): void {
    this.#woken = true;
    this.#waiter?.();
  }

  /**
   * Resolves at the next `notify` (immediately if one is pending), after `timeout_ms` (0 if it is negative), or when
   * `signal` aborts. The subscription stays until then, so a signal must not outlive the `Wake` for long.
   */
  wait(timeout_ms?: number, signal?: AbortSignal): Promise<void> {
    if (this.#woken || signal?.aborted) {
      this.#woken = false;
      return Promise.resolve();
    }
    if (signal !== this.#signal) {
      this.#signal = signal;
      signal?.addEventListener('abort', () => this.notify(), { once: true });
    }
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      this.#waiter = () => {
        clearTimeout(timer);
        this.#waiter = null;
        this.#woken = false;
        resolve();
      };
      if (timeout_ms !== undefined) timer = setTimeout(this.#waiter, Math.max(0, timeout_ms));
    });
  }
}

/** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}

let last_turn: Promise<unknown> = Promise.resolve();

/**
 * Resolves in a later turn of the event loop, for only one caller per turn. Callers that then do synchronous work
 * therefore never block the loop for longer than one of them takes.
 */
export function nextTurn(): Promise<void> {
  const turn = last_turn.then(() => new Promise<void>((resolve) => setImmediate(resolve)));
  last_turn = turn;
  return turn;
}

/** Runs at most one task per key at a time, in call order. A failed task does not affect later ones. */
export class KeyedQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#tails.get(key) ?? Promise.resolve()).then(task, task);
    const tail = result.then(
      () => {},
      () => {},
    );
    this.#tails.set(key, tail);
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    });
    return result;
  }
}
