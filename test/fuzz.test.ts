/**
 * Nonsense at every door of the real program, a little of it: nobody makes a fault, an end or a lie of the service. The seed
 * is the same each time; another by `SVC_TEST_SEED`. Much more of it: `npm run fuzz`.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { doorNames } from '../src/testing/fuzz/door.ts';
import { type OpenDoors, openDoors } from '../src/testing/fuzz/doors.ts';

const SEED = Number(process.env.SVC_TEST_SEED ?? 20_261_122);

let open: OpenDoors;
beforeAll(async () => {
  open = await openDoors(doorNames);
});
afterAll(() => open?.close());

test.each(doorNames)(
  `whatever comes in by %s is taken or refused, and the service goes on (seed ${SEED})`,
  async (name) => {
    const door = open.doors.find((one) => one.name === name)!;
    expect(await door.batch(SEED)).toBeGreaterThan(100);
    expect(open.plane.isRunning).toBe(true);
  },
);
