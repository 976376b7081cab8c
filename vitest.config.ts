import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { SlowestFirst } from './test/slowest-first.ts';

export default defineConfig({
  test: {
    // Most tests wait for processes more than they compute: on two cores three at a time.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.{ts,tsx}', 'test/architecture/**/*.test.ts'],
          pool: 'threads',
          isolate: false,
          testTimeout: 30_000,
          expect: { poll: { timeout: 20_000 } },
        },
      },
      {
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/architecture/**', 'test/real-agents/**'],
          globalSetup: 'test/build-web.ts',
          pool: 'forks',
          testTimeout: 120_000,
          // As patient as a browser that waits for an element.
          expect: { poll: { timeout: 30_000 } },
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
