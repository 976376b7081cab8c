/** How much a page jumped. */
import type { Shift } from './probed.ts';

/** Of the shifts that count together: so far apart at most, and so long altogether. */
const [GAP_MS, WINDOW_MS] = [1_000, 5_000];

/** As browsers count it: the sum of the worst window of shifts. */
export function layoutShift(shifts: readonly Shift[]): number {
  let worst = 0;
  let sum = 0;
  let [begun_at, last_at] = [-Infinity, -Infinity];
  for (const { at: when, value } of shifts) {
    const continues = when - last_at < GAP_MS && when - begun_at < WINDOW_MS;
    if (!continues) [begun_at, sum] = [when, 0];
    sum += value;
    last_at = when;
    worst = Math.max(worst, sum);
  }
  return worst;
}
