import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect } from 'vitest';
import {
  createEmptyDatabase,
  execute,
  postgresTest as it,
  type TestDatabase,
} from '../../testing/postgres.ts';
import { programs } from '../../testing/postgres-programs.ts';
import { postgresServerTest } from '../../testing/postgres-server.ts';
import { guideBlocks } from '../../testing/tutorials.ts';
import { DatabaseTooNew } from '../migrate.ts';
import { migrate, steps, UnsupportedDatabase, withPostgresTypes } from './migrate.ts';

const run = promisify(execFile);
const program = (name: string) => join(programs ?? '', name);

let database: TestDatabase | undefined;

afterEach(async () => {
  await database?.drop();
  database = undefined;
});

async function openEmpty(options?: string): Promise<string> {
  database = await createEmptyDatabase(options);
  return database.url;
}

it('runs each step once, whichever of several programs comes first', async () => {
  const url = await openEmpty();
  const counts = await Promise.all([migrate({ url }), migrate({ url }), migrate({ url })]);
  expect(counts.toSorted()).toEqual([0, 0, steps.length]);
  expect(await migrate({ url })).toBe(0);
});

it('runs later steps of SQLite with the types of PostgreSQL', async () => {
  const url = await openEmpty();
  await migrate({ url }, ['CREATE TABLE a (x INTEGER);']);
  await migrate({ url }, ['', 'ALTER TABLE a ADD COLUMN y TEXT; ALTER TABLE a ADD COLUMN z BLOB;']);
  const columns = await execute(
    url,
    `SELECT column_name AS name, data_type AS type, collation_name AS collation FROM information_schema.columns
      WHERE table_name = 'a' ORDER BY ordinal_position`,
  );
  expect(columns).toEqual([
    { name: 'x', type: 'bigint', collation: null },
    { name: 'y', type: 'text', collation: 'C' },
    { name: 'z', type: 'bytea', collation: null },
  ]);
  expect(withPostgresTypes('INTEGERS TEXT')).toBe('INTEGERS text COLLATE "C"');
});

it('rolls a failed step back, and runs it again', async () => {
  const url = await openEmpty();
  await migrate({ url }, ['CREATE TABLE a (x INTEGER);']);
  const failing = migrate({ url }, [
    '',
    'CREATE TABLE b (x INTEGER);',
    'CREATE TABLE c (x INTEGER); SELECT 1 / 0;',
  ]);
  await expect(failing).rejects.toThrow('division by zero');
  expect(await execute(url, `SELECT to_regclass('b') AS b, to_regclass('c') AS c`)).toEqual([
    { b: 'b', c: null },
  ]);
  expect(await migrate({ url }, ['', '', 'CREATE TABLE c (x INTEGER);'])).toBe(1);
});

it('rejects a database with a newer schema', async () => {
  const url = await openEmpty();
  await migrate({ url }, ['', '']);
  await expect(migrate({ url }, [''])).rejects.toBeInstanceOf(DatabaseTooNew);
  await expect(migrate({ url }, [''])).rejects.toThrow(
    /schema version 28, but .* up to 27: start a newer svc$/,
  );
});

it('rejects a database whose encoding is not UTF-8', async () => {
  const url = await openEmpty(`ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`);
  await expect(migrate({ url })).rejects.toBeInstanceOf(UnsupportedDatabase);
});

postgresServerTest('upgrades a dump of an earlier version that was restored as the guide says', async () => {
  const url = await openEmpty();
  const server = new URL(url);
  const name = server.pathname.slice(1);
  server.pathname = '/postgres';
  const folder = await mkdtemp(join(tmpdir(), 'svc-dump-'));
  const dump = join(folder, 'svc.dump');
  try {
    await migrate({ url }, steps.slice(0, 1));
    await run(program('pg_dump'), ['--format=custom', `--file=${dump}`, `--dbname=${url}`]);
    await migrate({ url });
    const [statements] = await guideBlocks('postgresql', 'Back up and restore', 'sql');
    for (const statement of statements!.trim().split('\n')) {
      const here = statement.replaceAll(/(DATABASE|TO) svc/g, `$1 ${name}`).replace(' OWNER svc', '');
      await execute(server.href, here);
    }
    const [, restore] = await guideBlocks('postgresql', 'Back up and restore');
    const [, flags] = /pg_restore (--.*?) --host/.exec(restore!)!;
    await run(program('pg_restore'), [...flags!.split(' '), `--dbname=${url}`, dump]);
    expect(await migrate({ url })).toBe(steps.length - 1);
  } finally {
    await execute(server.href, `DROP DATABASE IF EXISTS ${name}_before`);
    await rm(folder, { recursive: true });
  }
});
