/** One service for the tests of a file that can share it. */
import { afterAll } from 'vitest';
import { type PlaneOptions, TestPlane } from './plane.ts';

/**
 * Returns a function that returns the service, and starts it at the first call. It is closed after the last test of the file.
 * A test must not stop it, and must undo what would affect another test.
 */
export function sharedPlane(options: PlaneOptions = {}): () => Promise<TestPlane> {
  let plane: Promise<TestPlane> | undefined;
  afterAll(async () => (await plane)?.close());
  return () => {
    plane ??= TestPlane.open(options);
    return plane;
  };
}
