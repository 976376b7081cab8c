/**
 * Tests that repeat one idea, such as a kill at each of many places, run a few of their cases in `npm test`, and floods and long
 * waits none. `npm run test:long`, which runs before a release, runs all of them.
 */
import { type TestAPI, test } from 'vitest';

/** Whether this is `npm run test:long`. */
export const is_long = process.env.SVC_TEST_LONG === '1';

/** A test that only the long run knows. */
export const longTest = (is_long ? test : () => {}) as TestAPI;

/** All cases in the long run, otherwise only the first `count`: put the most telling ones first. */
export function firstOf<T>(count: number, cases: readonly T[]): readonly T[] {
  return is_long ? cases : cases.slice(0, count);
}

/** The number of kills in tests at random moments; `SVC_TEST_KILLS` takes precedence. */
export function killCount(usual: number, long: number): number {
  return Number(process.env.SVC_TEST_KILLS ?? (is_long ? long : usual));
}
