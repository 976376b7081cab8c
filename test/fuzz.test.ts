/**
 * Sends one batch of malformed input to every entry point of the real program, which must not fail, crash or record a wrong
 * state. The seed is fixed; `SVC_TEST_SEED` sets another. `npm run fuzz` runs more batches.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryPointNames } from '../src/testing/fuzz/entry-point.ts';
import { type OpenEntryPoints, openEntryPoints } from '../src/testing/fuzz/entry-points.ts';

const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_122);

let open: OpenEntryPoints;
beforeAll(async () => {
  open = await openEntryPoints(entryPointNames);
});
afterAll(() => open?.close());

test.each(entryPointNames)(
  `the service survives malformed input at the entry point %s (seed ${SEED})`,
  async (name) => {
    const entry = open.entries.find((one) => one.name === name)!;
    expect(await entry.batch(SEED)).toBeGreaterThan(100);
    expect(open.plane.isRunning).toBe(true);
  },
);
