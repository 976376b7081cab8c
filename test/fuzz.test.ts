/**
 * Malformed input at every entry point of the real program, a little of it: nobody makes a fault, an end or a lie of the service. The seed
 * is the same each time; another by `SVC_TEST_SEED`. Much more of it: `npm run fuzz`.
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
  `whatever comes in by %s is taken or refused, and the service goes on (seed ${SEED})`,
  async (name) => {
    const entry = open.entries.find((one) => one.name === name)!;
    expect(await entry.batch(SEED)).toBeGreaterThan(100);
    expect(open.plane.isRunning).toBe(true);
  },
);
