/** The layout shift of a page. */
import type { Shift } from './probed.ts';

/** The maximum gap between shifts in one window, and the maximum length of a window. */
const [GAP_MS, WINDOW_MS] = [1_000, 5_000];

/** CLS, as browsers compute it: the sum of the shifts in the worst window. */
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
