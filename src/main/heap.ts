/** V8's heap settings for a service that replays large logs, and is idle most of the time. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { limits } from './limits.ts';

/**
 * Lets the heap double before the next collection. V8 counts buffers when it decides to collect garbage, but not when it decides
 * how much the heap may grow until then. By default, it collects after every 12 MiB of buffers, and a replay of sealed events takes
 * 1.5 times the processor time. Call it when everything is loaded: as an option of `node`, it would take 70 ms of processor time,
 * because V8 accepts the compiled code in Node's executable only with the settings with which it was compiled.
 */
export function letHeapDouble(): void {
  setFlagsFromString('--heap-growing-percent=100');
}

/**
 * Frees the memory that only the start needed, about 11 MiB, as soon as the event loop is idle. V8 would do so only under memory
 * pressure. It blocks the event loop once, for 0.1 to 0.2 s.
 */
export function collectWhenIdle(interval_ms: number = limits.idle_check_ms): void {
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization > limits.idle_utilization_max) return;
    clearInterval(timer);
    collect();
  }, interval_ms).unref();
}

/** V8 gives back the memory that it keeps for new objects only in its last resort. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
