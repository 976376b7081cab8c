/**
 * Measures how long the event loop of the service is blocked. It is loaded before the service's code. The resolution of 10 ms in
 * `/metrics` is too coarse here. On SIGUSR2, it writes the results to a file and resets them.
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
