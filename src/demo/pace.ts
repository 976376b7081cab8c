import { setImmediate } from 'node:timers/promises';
import { sleep } from '../base/async.ts';
import { limits } from '../base/limits.ts';

/** How fast the agent goes: 1 is pleasant to watch, 0 does not wait at all. */
export class Pace {
  readonly #speed: number;

  constructor(speed: number) {
    this.#speed = speed;
  }

  /** A pause of the script; lets input in even where it does not wait. Throws when `signal` aborts. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#speed === 0) await setImmediate();
    else await sleep(Math.min(ms / this.#speed, limits.timer_ms_max), signal);
    signal.throwIfAborted();
  }
}
