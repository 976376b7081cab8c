/**
 * Which tests run when. `npm test` runs only a few cases of a test that repeats one idea, such as a kill at each of many places,
 * and no test that floods, waits long or compares pictures of all screens. `npm run test:long`, which runs before a release,
 * runs all of them.
 */
import { type TestAPI, test } from 'vitest';

/** Whether this is `npm run test:long`. */
export const is_long = process.env.SVC_TEST_LONG === '1';

/** A test that only `npm run test:long` runs. */
export const longTest = (is_long ? test : () => {}) as TestAPI;

/** All cases in the long run, otherwise only the first `count`, so put the most important ones first. */
export function firstOf<T>(count: number, cases: readonly T[]): readonly T[] {
  return is_long ? cases : cases.slice(0, count);
}

/** The number of kills in tests at random moments; `SVC_TEST_KILLS` takes precedence. */
export function killCount(usual: number, long: number): number {
  return Number(process.env.SVC_TEST_KILLS ?? (is_long ? long : usual));
}

/** The number of attempts in a race, which `npm test` reduces to a quarter. */
export function raceAttempts(long: number): number {
  return is_long ? long : Math.ceil(long / 4);
}
