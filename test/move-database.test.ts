/** Moves of an installation with running agents from the embedded database to PostgreSQL, and back. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { onlyLong } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import {
  createEmptyDatabase,
  execute,
  type TestDatabase,
  postgresTest as test,
} from '../src/testing/postgres.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

let database: TestDatabase;
let plane: TestPlane;
let on_postgres: Record<string, string>;

beforeEach(async () => {
  database = await createEmptyDatabase();
  on_postgres = { SVC_DATABASE_URL: database.url };
  plane = await TestPlane.open();
});
afterEach(async () => {
  await plane.close();
  await database.drop();
});

function move(to: 'postgres' | 'embedded', kill_after_ms?: number) {
  return plane.cli([`move-to-${to}`], { env: on_postgres, kill_after_ms });
}

async function requireIntactAudit(): Promise<void> {
  expect(await plane.cli(['audit', 'verify'])).toMatchObject({ code: 0 });
}

test('agents keep running while the data moves to PostgreSQL and back, and no output is lost or repeated', async () => {
  const writers = await startWriters(plane, plane, MIXED.slice(0, 2));
  const before = await plane.agent('echo before');
  await plane.finished(before.id);
  expect((await move('postgres')).stderr).toContain(`is in use by pid ${plane.pid}`);
  await plane.kill('SIGTERM');
  const moved = await move('postgres');
  expect(moved).toMatchObject({ code: 0, stderr: expect.stringMatching(/^moved \d+ rows to svc_test_\w+ /) });
  await expect(plane.start()).rejects.toThrow('is used with the PostgreSQL database');
  await plane.start(on_postgres);
  expect((await plane.output(before.id)).toString()).toBe('before\n');
  await requireIntactAudit();
  const during = await plane.agent('echo during');
  await plane.finished(during.id);

  await plane.kill('SIGTERM');
  const back = await move('embedded');
  expect(back).toMatchObject({ code: 0, stderr: expect.stringContaining('an older embedded database') });
  await expect(plane.start(on_postgres)).rejects.toThrow('is used with its embedded database');
  await plane.start();
  expect((await plane.output(during.id)).toString()).toBe('during\n');
  await requireIntactAudit();
  await expectNothingLost(plane, plane, writers);
  const frames = await plane.frames(during.id, (seen) => seen.some(({ event }) => event === 'status'));
  expect(Number(frames.at(-1)!.id)).toBeLessThan(10);
});

test('a move can be repeated until it is complete, and refuses databases that are not suitable', async () => {
  const agent = await plane.agent('echo text');
  await plane.finished(agent.id);
  await plane.kill('SIGTERM');
  expect((await plane.cli(['move-to-postgres'])).stderr).toContain('database.url is not set');
  expect((await move('embedded')).stderr).toContain('is not used with PostgreSQL');
  await expect(plane.start(on_postgres)).rejects.toThrow('run svc move-to-postgres');
  expect((await move('postgres')).code).toBe(0);
  expect((await move('postgres')).stderr).toContain('already uses PostgreSQL');

  await plane.start(on_postgres);
  await plane.kill('SIGTERM');
  expect((await move('embedded')).code).toBe(0);
  expect((await readdir(plane.data_dir)).filter((name) => name.startsWith('move-'))).toEqual([]);
  expect((await move('postgres')).stderr).toContain('already contains data: use an empty one');

  // As after a move that ended before the data directory was marked.
  await execute(database.url, "UPDATE meta SET value = 'arriving' WHERE key = 'move'");
  expect((await move('postgres')).code).toBe(0);
  await plane.start(on_postgres);
  expect((await plane.output(agent.id)).toString()).toBe('text\n');
  expect(await readdir(join(plane.data_dir))).toContain('postgresql');
});

onlyLong(test)(
  'a move that is killed at any moment leaves one complete database, and can be repeated',
  { timeout: 600_000 },
  async () => {
    // Enough to be sealed.
    const long = await plane.agent('seq 1 1500000');
    const short = await plane.agent('echo text');
    await plane.finished(long.id);
    await plane.finished(short.id);
    const output = await plane.output(long.id);
    await expect.poll(() => readdir(join(plane.data_dir, 'log'))).not.toEqual([]);
    await plane.kill('SIGTERM');

    for (const to of ['postgres', 'embedded'] as const) {
      let kills = 0;
      for (let delay_ms = 100, is_moved = false; !is_moved; delay_ms = Math.ceil(delay_ms * 1.3)) {
        const { code } = await move(to, delay_ms);
        if (code === null) kills++;
        is_moved = (await startWithEither()) === to;
        expect((await plane.output(long.id)).equals(output)).toBe(true);
        expect((await plane.output(short.id)).toString()).toBe('text\n');
        await requireIntactAudit();
        await plane.kill('SIGTERM');
      }
      expect(kills).toBeGreaterThan(3);
    }
  },
);

/** Starts the plane with the database that it uses now, and expects that it refuses the other one. */
async function startWithEither(): Promise<'postgres' | 'embedded'> {
  const on_server = await plane.start(on_postgres).then(
    () => true,
    () => false,
  );
  if (!on_server) {
    await plane.start();
    return 'embedded';
  }
  await plane.kill('SIGTERM');
  await expect(plane.start()).rejects.toThrow('is used with the PostgreSQL database');
  await plane.start(on_postgres);
  return 'postgres';
}
