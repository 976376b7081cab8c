/** Repeats a synchronous step at a steady rate, by the monotonic clock. Returns the number of repetitions when all are done. */
import { nowUs } from './clock.ts';

export function repeatSteadily(
  per_s: number,
  seconds: number,
  step: (index: number) => void,
): Promise<number> {
  const total = per_s * seconds;
  const begun_us = nowUs();
  let done = 0;
  return new Promise((resolve) => {
    const next = () => {
      const due = Math.min(total, Math.floor(((nowUs() - begun_us) * per_s) / 1e6));
      for (; done < due; done++) step(done);
      if (done < total) setTimeout(next, 1);
      else resolve(done);
    };
    next();
  });
}
