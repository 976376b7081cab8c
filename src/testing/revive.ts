import { sleep } from '../base/async.ts';
import type { TestPlane } from './plane.ts';

/** Restarts a plane whenever it exits. Call the result to stop that; it returns the number of exits. */
export function restartOnExit(plane: TestPlane): () => Promise<number> {
  let stopped = false;
  let exits = 0;
  const watching = (async () => {
    for (; !stopped; await sleep(5)) {
      if (plane.isRunning) continue;
      exits++;
      // It may be killed while it starts.
      await plane.start().catch(() => {});
    }
  })();
  return async () => {
    stopped = true;
    await watching;
    return exits;
  };
}
