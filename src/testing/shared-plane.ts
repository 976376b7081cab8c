/** One service for the tests of a file that can share it. */
import { afterAll } from 'vitest';
import { type PlaneOptions, TestPlane } from './plane.ts';

const shared = new WeakSet<TestPlane>();

/**
 * Returns a function that returns the service, and starts it at the first call, or if a test has ended it. It is closed after the
 * last test of the file. A test must undo what would affect another test.
 */
export function sharedPlane(options: PlaneOptions = {}): () => Promise<TestPlane> {
  let opening: Promise<TestPlane> | undefined;
  afterAll(async () => (await opening)?.close());
  return async () => {
    opening ??= TestPlane.open(options);
    const plane = await opening;
    shared.add(plane);
    if (!plane.isRunning) await plane.start();
    return plane;
  };
}

/** For tests of which some have a service of their own. */
export async function closeUnlessShared(plane: TestPlane | null): Promise<void> {
  if (plane && !shared.has(plane)) await plane.close();
}
