/** `npm run test:agents`: real coding agents, installed for it. No part of `npm test`: they are large, and not ours. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real-agents/**/*.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
