import { globSync, readFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { bundledEntryPoints } from './src/testing/bundled.ts';
import { COMPILED } from './src/testing/compiled.ts';
import { postgres_missing } from './src/testing/postgres-programs.ts';
import { memoryFolder } from './src/testing/temporary.ts';
import { SlowestFirst } from './test/slowest-first.ts';
import { storeTests } from './test/store-tests.ts';

// For the workers. Child processes that run the sources need half of the processor time with the cache.
process.env.NODE_COMPILE_CACHE = COMPILED;

/** Files of the whole program that `npm test` leaves to `npm run test:long`: floods, long waits, pictures of all screens. */
const long = [
  'cluster-faults',
  'cluster-kills',
  'cluster-network',
  'cluster-upgrade',
  'link-disk',
  'link-silence',
  'many-sessions',
  'monitoring',
  'postgresql-disk',
  'web-acp-v2',
  'web-screens',
].map((name) => `test/${name}.test.ts`);
/** Files of which `npm test` runs some tests or cases, and `npm run test:long` all: `src/testing/long.ts`. */
const partly_long = globSync('{src,test}/**/*.test.ts', { cwd: import.meta.dirname }).filter((file) =>
  /testing\/long\.ts|\blong\w*BrowserTest\b|confinements/.test(
    readFileSync(join(import.meta.dirname, file), 'utf8'),
  ),
);

const cores = availableParallelism();

const unit = {
  // Many of these tests wait more than they compute: on two cores five files at a time.
  maxWorkers: Math.max(5, cores + 1),
  sequence: { groupOrder: 0 },
  globalSetup: ['test/build-program.ts'],
  // A process with all workers as threads is large, and to fork a large process for each program is slow.
  pool: 'forks' as const,
  isolate: false,
  testTimeout: 30_000,
  // The first test that needs PostgreSQL starts its server.
  hookTimeout: 60_000,
  expect: { poll: { timeout: 20_000 } },
};
const unit_env = { TMPDIR: process.env.TMPDIR ?? memoryFolder() ?? tmpdir() };

/** Tests of the whole program, with real processes. */
const whole = {
  // The programs that these tests start compute more: on two cores three files at a time.
  maxWorkers: Math.max(3, cores - 1),
  sequence: { groupOrder: 1 },
  exclude: ['test/architecture/**', 'test/real-agents/**'],
  globalSetup: ['test/build-program.ts', 'test/build.ts'],
  setupFiles: ['test/report-failures.ts'],
  pool: 'forks' as const,
  testTimeout: 120_000,
  // As patient as a browser that waits for an element.
  expect: { poll: { timeout: 30_000 } },
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    sequence: { sequencer: SlowestFirst },
    projects: [
      {
        plugins: [bundledEntryPoints],
        test: {
          ...unit,
          name: 'unit',
          include: ['src/**/*.test.{ts,tsx}', 'test/architecture/**/*.test.ts'],
          // Each transaction runs twice: one that cannot run again after a failed commit fails its tests.
          env: { ...unit_env, SVC_TEST_RUN_BODIES_TWICE: '1' },
        },
      },
      {
        plugins: [bundledEntryPoints],
        test: {
          ...unit,
          name: 'postgres',
          include: postgres_missing ? [] : storeTests(),
          // Each transaction runs once: the same ones run twice in `unit`, and on PostgreSQL a rollback leaves gaps in numbers.
          env: { ...unit_env, SVC_TEST_DATABASE: 'postgres' },
        },
      },
      {
        plugins: [bundledEntryPoints],
        test: {
          ...whole,
          name: 'whole',
          include: ['test/**/*.test.ts'],
          exclude: [...whole.exclude, ...long],
        },
      },
      {
        plugins: [bundledEntryPoints],
        test: {
          ...whole,
          name: 'long',
          include: [...long, ...partly_long],
          env: { SVC_TEST_LONG: '1' },
        },
      },
    ],
  },
});
