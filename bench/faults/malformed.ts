/** Malformed input at every entry point, as `npm run fuzz` sends it. */
import { entryPointNames, Finding } from '../../src/testing/fuzz/entry-point.ts';
import { openEntryPoints } from '../../src/testing/fuzz/entry-points.ts';
import { forgetPeak, peakMib, rssMib } from '../machine.ts';
import { type FaultRow, Tally } from './row.ts';

export const malformed: FaultRow = {
  number: 35,
  fault: 'malformed JSON, HTTP, gRPC and ACP; nesting depth 10,000; `__proto__` as a key and as a header',
  expected: '400, never 500, and the program keeps running',
  default_n: 10,
  run: async (n, seed) => {
    const tally = new Tally();
    const { plane, entries, close } = await openEntryPoints(entryPointNames);
    try {
      const before_mib = rssMib(plane.pid);
      forgetPeak(plane.pid);
      for (const entry of entries) {
        let cases = 0;
        try {
          for (let done = 0; done < n; done++) cases += await entry.batch(seed + done);
        } catch (error) {
          if (!(error instanceof Finding)) throw error;
          tally.check(false, `${entry.name}: ${error.message.slice(0, 1_000)}`);
        }
        tally.n += cases;
        tally.measure(`${entry.name}: ${cases} cases`);
      }
      tally.check(plane.isRunning, 'the plane exited');
      if (plane.isRunning) {
        tally.measure(
          `resident memory ${before_mib.toFixed(0)} MiB before, at most ${peakMib(plane.pid).toFixed(0)} MiB`,
        );
      }
    } finally {
      await close();
    }
    return tally.outcome();
  },
};
