import { sleep } from '../base/async.ts';
import type { TestPlane } from './plane.ts';

/** Starts a plane again whenever it dies. Call the result to stop that; it returns how often the plane died. */
export function revive(plane: TestPlane): () => Promise<number> {
  let enough = false;
  let deaths = 0;
  const watching = (async () => {
    for (; !enough; await sleep(5)) {
      if (plane.isRunning) continue;
      deaths++;
      // It may be killed while it starts.
      await plane.start().catch(() => {});
    }
  })();
  return async () => {
    enough = true;
    await watching;
    return deaths;
  };
}
