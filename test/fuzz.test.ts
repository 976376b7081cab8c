/**
 * Sends one batch of malformed input to every entry point of the real program, which must not fail, crash or record a wrong
 * state. The seed is fixed; `SVC_TEST_SEED` sets another. `npm run fuzz` runs more batches, and `npm run test:long` repeats one.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { entryPointNames } from '../src/testing/fuzz/entry-point.ts';
import { type OpenEntryPoints, openEntryPoints } from '../src/testing/fuzz/entry-points.ts';
import { growthMib, rssMib } from '../src/testing/fuzz/watch.ts';
import { firstOf } from '../src/testing/long.ts';

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

test.each(firstOf(0, entryPointNames))(
  'memory does not keep growing when the same malformed input is repeated at the entry point %s',
  { timeout: 300_000 },
  async (name) => {
    const entry = open.entries.find((one) => one.name === name)!;
    const samples: number[] = [];
    for (let n = 0; n < 30; n++) {
      await entry.batch(SEED);
      samples.push(await rssMib(open.plane.pid));
    }
    // Caches that are not full yet take up to 1 MiB.
    expect(growthMib(samples), samples.map(Math.round).join(' ')).toBeLessThan(2);
  },
);
