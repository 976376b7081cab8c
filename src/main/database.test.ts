/** Which database a plane opens, and with which data directory. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import type { ConfigKey } from '../core/config.ts';
import { headWithId } from '../store/event-rows/heads.ts';
import { currentIncarnation } from '../store/plane-id.ts';
import type { Store } from '../store/store.ts';
import { addAgent, addSession, batch } from '../store/testing.ts';
import { createDatabase, execute, postgresTest, type TestDatabase } from '../testing/postgres.ts';
import { loadConfig } from './config.ts';
import { markDatabase, openDatabase, requireEmbeddedDatabase } from './database.ts';
import { databaseCheck } from './doctor-database.ts';

let folder: string;
let database: TestDatabase | undefined;
let store: Store | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-database-'));
});
afterEach(async () => {
  await store?.close();
  await database?.drop();
  store = database = undefined;
  await rm(folder, { recursive: true, force: true });
});

function configWith(values: Partial<Record<ConfigKey, string>>) {
  const flags = new Map(Object.entries(values).map(([key, text]) => [key as ConfigKey, { text, flag: 'f' }]));
  return loadConfig({ env: {}, cwd: folder, home: folder, system_file: join(folder, 'none'), flags });
}

/** Opens the database with the data directory of this name, at a time in milliseconds. */
async function open(
  name: string,
  values: Partial<Record<ConfigKey, string>>,
  now_ms = 1_000,
): Promise<Store> {
  const data_dir = join(folder, name);
  await mkdir(data_dir, { recursive: true });
  const config = configWith({ data_dir, ...values });
  const key = new Uint8Array(32).fill(name.charCodeAt(0));
  const clock = { ...systemClock, now: () => now_ms };
  store = await openDatabase({
    config,
    data_dir,
    key,
    clock,
    log: silentLog,
    onLost: () => {},
    member: null,
  });
  return store;
}

async function reopen(
  name: string,
  values: Partial<Record<ConfigKey, string>>,
  now_ms?: number,
): Promise<Store> {
  await store?.close();
  store = undefined;
  return open(name, values, now_ms);
}

postgresTest(
  'uses a database on a server only with the data directory that it was first used with',
  async () => {
    database = await createDatabase();
    const values = { 'database.url': database.url };
    expect((await open('a', values)).source.kind).toBe('postgres');
    await expect(reopen('b', values)).rejects.toThrow(
      /another secret\.key than .*: start svc with that one$/,
    );
    const shared = { ...values, 'cluster.listen': '127.0.0.1:8090', 'server.local_node': 'false' };
    await expect(reopen('b', shared)).rejects.toThrow(/: copy secret\.key from /);
    await reopen('a', values);
  },
);

postgresTest(
  'does not open the embedded database of a data directory that is used with a server',
  async () => {
    database = await createDatabase();
    await open('a', { 'database.url': database.url });
    await expect(reopen('a', {})).rejects.toThrow(
      /is used with the PostgreSQL database svc_test_\w+ .*: set database.url/,
    );
    await rm(join(folder, 'a', 'postgresql'));
    expect((await reopen('a', {})).source.kind).toBe('sqlite');
    expect(() => requireEmbeddedDatabase(configWith({ data_dir: join(folder, 'a') }), '')).not.toThrow();
  },
);

postgresTest('continues logs far above all numbers after the database was restored', async () => {
  database = await createDatabase();
  const values = { 'database.url': database.url };
  const before = await open('a', values);
  const num = await addAgent(before, 'agt_1');
  await addSession(before, num, 'ses_1');
  await before.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
  const head = () => store!.read(async (reader) => (await headWithId(reader, num))!.last_seq);
  await reopen('a', values, 2_000);
  expect(await head()).toBe(1);

  // A restore creates the tables again.
  await store!.close();
  await execute(
    database.url,
    'CREATE TABLE restored AS TABLE plane_claim; DROP TABLE plane_claim; ALTER TABLE restored RENAME TO plane_claim',
  );
  await reopen('a', values, 3_000);
  expect(await head()).toBe(1_000_000_002);
  expect(await store!.read(currentIncarnation)).toBe(3_000);
  await reopen('a', values, 4_000);
  expect(await head()).toBe(1_000_000_002);
});

test('a database that is still in the data directory is backed up, also when `database.url` is set for the move', async () => {
  const config = configWith({ data_dir: folder, 'database.url': 'postgres://h/db' });
  const require = () => requireEmbeddedDatabase(config, 'use pg_dump');
  expect(require).toThrow('the data is in the PostgreSQL database db at h:5432: use pg_dump');
  await writeFile(join(folder, 'svc.db'), '');
  expect(require).not.toThrow();
  await markDatabase(folder, 'marked');
  expect(require).toThrow('the data is in the PostgreSQL database marked: use pg_dump');
});

test('rejects certificates that cannot be read', async () => {
  const values = { 'database.url': 'postgres://h/db', 'database.ca': join(folder, 'none.pem') };
  await expect(open('a', values)).rejects.toThrow(/^database.ca \S+ cannot be read: ENOENT$/);
  expect(await databaseCheck(configWith(values))).toMatchObject({ ok: false, name: 'database' });
});

postgresTest('the doctor names the plane that uses the database, or what is wrong', async () => {
  database = await createDatabase();
  const values = { 'database.url': database.url };
  expect(await databaseCheck(configWith({}))).toBeNull();
  const free = await databaseCheck(configWith(values));
  expect(free).toMatchObject({ ok: true, detail: expect.stringMatching(/, PostgreSQL \d[^,]*$/) });
  await open('a', values);
  const used = await databaseCheck(configWith(values));
  expect(used).toMatchObject({
    ok: true,
    detail: expect.stringContaining(`, used by pid ${process.pid} on `),
  });
  const missing = new URL(database.url);
  missing.pathname = '/none';
  expect(await databaseCheck(configWith({ 'database.url': missing.href }))).toMatchObject({
    ok: false,
    detail: expect.stringContaining('database "none" does not exist'),
  });
});

test('the password of a database in an argument is a warning', async () => {
  expect(configWith({ 'database.url': 'postgres://svc:hush@h/db' }).warnings).toEqual([
    'f contains a password, which other users can read: use SVC_DATABASE_URL_FILE instead',
  ]);
  expect(configWith({ 'database.url': 'postgres://svc@h/db' }).warnings).toEqual([]);
  await writeFile(join(folder, 'url'), 'postgres://svc:hush@h/db\n');
  const env = { SVC_DATABASE_URL_FILE: 'url' };
  const config = loadConfig({ env, cwd: folder, home: folder, system_file: join(folder, 'none') });
  expect(config.get('database.url')).toBe('postgres://svc:hush@h/db');
  expect(config.warnings).toEqual([]);
});
