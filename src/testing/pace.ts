/** Pauses between two looks at a service's state, for tests that wait for a change. */
import { sleep } from '../base/async.ts';

/** A look at a service costs two processes about 3 ms, so looking every 20 ms would take a seventh of a processor. */
const SHARE = 8;
const MIN_MS = 10;
const MAX_MS = 250;

/** Returns a function that pauses for an eighth of the time since this call. So a wait takes little longer than the change. */
export function openPace(): () => Promise<void> {
  const began = performance.now();
  return () => sleep(Math.min(MAX_MS, Math.max(MIN_MS, (performance.now() - began) / SHARE)));
}
