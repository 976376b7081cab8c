import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Tests wait for processes more than they compute: on two cores two at a time, not one.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.{ts,tsx}', 'test/house/**/*.test.ts'],
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
          exclude: ['test/house/**', 'test/real-agents/**'],
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
