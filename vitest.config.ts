import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/house/**/*.test.ts'],
          pool: 'threads',
          isolate: false,
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: ['test/house/**', 'test/real-agents/**'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
