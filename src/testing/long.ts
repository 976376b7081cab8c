/**
 * Which tests run when. `npm test` proves each promise once, so that it is fast enough to run after every change. It leaves to
 * `npm run test:long`, which runs before a release: the other cases of a test that repeats one idea, such as a kill at each of
 * many places; the same promise on another path, such as on a phone, over TLS or on a remote node; details of a screen; and
 * whatever floods, waits long or compares pictures of all screens.
 */
import { test } from 'vitest';

/** Whether this is `npm run test:long`. */
export const is_long = process.env.SVC_TEST_LONG === '1';

/** The same kind of test, such as `test` or `browserTest`, but run by `npm run test:long` only. */
export function onlyLong<T>(kind: T): T {
  return is_long ? kind : ((() => {}) as T);
}

export const longTest = onlyLong(test);

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
