/** Lets transactions that conflicted run one after the other. At the same time, they would conflict with each other again. */
import { sleep } from '../../base/async.ts';

export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Runs a task after those before it have ended, but no later than after `wait_ms_max`. */
  async run<T>(task: () => Promise<T>, wait_ms_max: number): Promise<T> {
    const before = this.#last;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    this.#last = before.then(() => ended);
    const begun = new AbortController();
    await Promise.race([before, sleep(wait_ms_max, begun.signal)]);
    begun.abort();
    try {
      return await task();
    } finally {
      end();
    }
  }
}
