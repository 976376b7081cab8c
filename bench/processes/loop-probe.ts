/**
 * Loaded into the service before its own code: how long its event loop stood still. `/metrics` tells the same with a
 * resolution of 10 ms, which is too coarse here. Writes what it saw and starts anew at SIGUSR2.
 */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const file = process.env.BENCH_LOOP_FILE;
if (isMainThread && file !== undefined && process.argv.includes('serve')) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  process.on('SIGUSR2', () => {
    const seen = { max_ms: delay.max / 1e6, p99_ms: delay.percentile(99) / 1e6 };
    delay.reset();
    writeFileSync(file, JSON.stringify(seen), { flush: true });
  });
}
