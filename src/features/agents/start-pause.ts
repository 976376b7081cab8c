/**
 * Keeps agents from starting while all of them are stopped. In memory, because only the active plane starts agents, and the next
 * one may.
 */
import { limits } from './limits.ts';

export class StartPause {
  #holders = 0;
  /** By the monotonic clock. */
  #until_ms = 0;

  get active(): boolean {
    return this.#holders > 0 || performance.now() < this.#until_ms;
  }

  /** No agent starts while `work` runs and, if its result is `true`, until the plane has had the time to stop. */
  async during(work: () => Promise<boolean>): Promise<void> {
    this.#holders += 1;
    try {
      if (await work()) this.#until_ms = performance.now() + limits.start_pause_ms;
    } finally {
      this.#holders -= 1;
    }
  }
}
