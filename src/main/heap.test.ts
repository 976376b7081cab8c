import { expect, onTestFinished, test, vi } from 'vitest';
import { collectWhenIdle } from './heap.ts';

const heapMib = () => process.memoryUsage().heapUsed / 1024 / 1024;

/** As large as `count` objects of 10 numbers, which nothing refers to afterwards. */
function makeGarbage(count: number): number {
  const made = Array.from({ length: count }, (_, at) => ({ numbers: Array.from({ length: 10 }, () => at) }));
  return made.length;
}

test('collects garbage once, when the event loop is idle', async () => {
  const load = vi.spyOn(performance, 'eventLoopUtilization');
  onTestFinished(() => load.mockRestore());
  const loaded = (utilization: number) => ({ idle: 0, active: 0, utilization });
  load.mockReturnValue(loaded(0.5));
  makeGarbage(500_000);
  const before = heapMib();
  collectWhenIdle(1);
  await expect.poll(() => load.mock.calls.length).toBeGreaterThan(6);
  load.mockReturnValue(loaded(0.01));
  await expect.poll(heapMib).toBeLessThan(before - 20);
  // The heap may have been collected by itself before the last check.
  let checks = 0;
  const moreChecks = () => {
    const before = checks;
    checks = load.mock.calls.length;
    return checks - before;
  };
  await expect.poll(moreChecks, { interval: 20 }).toBe(0);
});
