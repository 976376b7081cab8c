import { setImmediate } from 'node:timers/promises';
import { sleep } from '../../base/async.ts';
import { limits } from '../../base/limits.ts';

/** Speed factor: 1 is pleasant to watch, 0 does not wait at all. */
export class Pace {
  readonly #speed: number;

  constructor(speed: number) {
    this.#speed = speed;
  }

  /** A pause in the script. Processes input even if it does not wait. Throws when `signal` aborts. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#speed === 0) await setImmediate();
    else await sleep(Math.min(ms / this.#speed, limits.timer_ms_max), signal);
    signal.throwIfAborted();
  }
}
