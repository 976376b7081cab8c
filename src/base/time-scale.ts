/**
 * Lets tests shorten the silence that a link tolerates, the intervals of maintenance and checks, and a shutdown, instead of
 * waiting for them. With `SVC_TEST_TIME_SCALE=0.2`, `scaled(5_000)` is one second. Without a number above 0 and below 1, it is
 * 5,000 ms.
 */
const scale = Number(globalThis.process?.env.SVC_TEST_TIME_SCALE);
const factor = scale > 0 && scale < 1 ? scale : 1;

/** Returns the duration that the program uses for one of `ms`, in milliseconds. */
export const scaled = (ms: number): number => ms * factor;
