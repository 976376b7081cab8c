/**
 * ACP agents can write messages that cost far more to handle than to write, such as requests that they withdraw at once.
 * Streams of such messages take turns, and pause after each one, so that together they leave most of the time to
 * everybody else. Nothing is lost meanwhile: their bytes stay in the spool.
 */
import { sleep } from '../../base/async.ts';
import { FairQueue, type TaskKey } from '../../base/fair-queue.ts';
import { limits } from '../limits.ts';

const any = Number.POSITIVE_INFINITY;
const one_at_a_time = {
  ...{ running: 1, running_per_owner: 1, running_per_resource: 1 },
  ...{ waiting: any, waiting_per_owner: any, waiting_per_resource: any },
};

export class CostlyTurns {
  readonly #queue = new FairQueue(one_at_a_time, () => new Error('too many costly streams'));

  /** Runs a transaction when its turn comes, and lets the next one wait. Rejects if `signal` aborts before its turn. */
  async run<T>(key: TaskKey, transaction: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const turn = this.#queue.run(key, async () => {
      signal.throwIfAborted();
      const begun = performance.now();
      await transaction().then(resolve, reject);
      const pause_ms = limits.acp_pause_factor * (performance.now() - begun);
      await sleep(Math.min(pause_ms, limits.acp_pause_ms_max), signal);
    });
    turn.catch(reject);
    return promise;
  }
}
