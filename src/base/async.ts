/** A wake-up without data: many `notify` calls before one `wait` count once; a lost one costs latency only. */
export class Wake {
  #woken = false;
  #waiter: (() => void) | null = null;
  /** Heard once and for good: a wait comes with every piece of work, an abort once. */
  #signal: AbortSignal | undefined;

  notify(): void {
    this.#woken = true;
    this.#waiter?.();
  }

  /** Resolves at the next (or a pending) `notify`, after `timeout_ms`, or when `signal` aborts. */
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
      if (timeout_ms !== undefined) timer = setTimeout(this.#waiter, timeout_ms);
    });
  }
}

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

/** Runs at most one task per key at a time, in the order of the calls. */
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

/** Lets at most so many pieces of work run at a time; the others wait in the order in which they came. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
