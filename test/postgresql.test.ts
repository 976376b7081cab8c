/** The real program with its data in PostgreSQL. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { silentLog } from '../src/base/log.ts';
import type { Frame } from '../src/client/client.ts';
import { openPostgres } from '../src/store/postgres/postgres.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { createDatabase, type TestDatabase, postgresTest as test } from '../src/testing/postgres.ts';
import { PostgresProxy } from '../src/testing/postgres-proxy.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

const PASSWORD = 'hush-hush-hush';

let database: TestDatabase;
let proxy: PostgresProxy;
let url: string;
let plane: TestPlane | undefined;

beforeEach(async () => {
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  const with_password = new URL(proxy.url);
  // The server of the tests accepts any password.
  if (with_password.password === '') with_password.password = PASSWORD;
  url = with_password.href;
});
afterEach(async () => {
  await plane?.close();
  plane = undefined;
  await proxy.close();
  await database.drop();
});

/** Whether the data of an event, as JSON, contains a text. */
const contains = (text: string) => (frame: Frame) => JSON.stringify(frame.data).includes(text);
const env = () => ({ SVC_DATABASE_URL: url });

test('a plane that is killed and started again neither loses nor repeats output', async () => {
  plane = await TestPlane.open({ env: env() });
  const writers = await startWriters(plane, plane, MIXED.slice(0, 2));
  for (let kill = 0; kill < 2; kill++) {
    await plane.kill('SIGKILL');
    await plane.start();
  }
  await expectNothingLost(plane, plane, writers);
  expect(await readdir(plane.data_dir)).not.toContain('svc.db');
});

test('a second plane is refused, and the first one continues', async () => {
  plane = await TestPlane.open({ env: env() });
  const second = await TestPlane.prepare({ env: env() });
  try {
    const refused = new RegExp(
      `svc: the database \\S+ .* is in use by pid ${plane.pid} on \\S+ since \\S+\n`,
    );
    await expect(second.start()).rejects.toThrow(refused);
    expect(second.log).not.toContain(PASSWORD);
  } finally {
    await second.close();
  }
  const agent = await plane.agent('echo done');
  expect((await plane.finished(agent.id)).status).toBe('completed');
});

test('a plane whose database was taken over stops, and its agents keep running', async () => {
  plane = await TestPlane.open({ env: env() });
  const writers = await startWriters(plane, plane, MIXED.slice(0, 2));
  proxy.cut();
  const other = await openPostgres({ url: database.url, log: silentLog });
  proxy.accept();
  await plane.ended();
  expect(await plane.kill()).toBe(1);
  expect(plane.log).toMatch(/svc: another control plane has taken over the database\n$/);
  await other.close();
  await plane.start();
  await expectNothingLost(plane, plane, writers);
});

test('logs one line when PostgreSQL does not answer, one when it is back, and stays ready', async () => {
  plane = await TestPlane.open({ env: env() });
  const readyz = async () => {
    const response = await fetch(`${plane!.url}/readyz`);
    return [response.status, await response.json()];
  };
  const metric = async (token?: string) => {
    const init = token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } };
    const text = await (await fetch(`${plane!.url}/metrics`, init)).text();
    return /^svc_postgresql_up (\d)$/m.exec(text)![1];
  };
  expect(await readyz()).toEqual([200, { status: 'ok', database: 'ok' }]);
  expect(await metric(plane.token)).toBe('1');
  const before = plane.log.length;
  proxy.cut();
  const failing = Array.from({ length: 5 }, () => plane!.client.call('getMe', {}));
  await expect.poll(readyz).toEqual([200, { status: 'ok', database: 'unreachable' }]);
  expect(await metric(plane.token)).toBe('0');
  const failed = { status: 'rejected', reason: { code: 'storage_failed' } };
  expect(await Promise.allSettled(failing)).toMatchObject(failing.map(() => failed));
  proxy.accept();
  await expect.poll(readyz).toEqual([200, { status: 'ok', database: 'ok' }]);
  expect(await metric(plane.token)).toBe('1');
  const lines = plane.log.slice(before).trim().split('\n');
  const records = lines.map((line) => JSON.parse(line) as { level: string; message: string });
  expect(records.filter(({ message }) => message.includes('PostgreSQL'))).toMatchObject([
    { level: 'warn', message: 'PostgreSQL does not answer' },
    { level: 'info', message: 'PostgreSQL answers again' },
  ]);
  // None of the requests that failed.
  expect(records.filter(({ level }) => level === 'error')).toEqual([]);

  await plane.client.call('updateConfig', { body: { 'metrics.open': true } });
  proxy.cut();
  await expect.poll(() => metric()).toBe('0');
});

test('shows the password in no log line, no argument, no error and to no agent', async () => {
  plane = await TestPlane.open({ env: env() });
  const agent = await plane.agent('env; sleep 300');
  await plane.frames(agent.id, (frames) => frames.some(contains('PATH=')));
  // Loses connections that are in use and connections that are not.
  proxy.cut();
  await plane.client.call('getMe', {}).catch(() => {});
  proxy.accept();
  await expect
    .poll(() =>
      plane!.client.call('getMe', {}).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);

  const texts = [plane.log, (await plane.output(agent.id)).toString(), ...(await argumentsOfSvc())];
  for (const args of [['doctor'], ['config', 'show'], ['backup', 'copy.tar'], ['restore', 'copy.tar']]) {
    const { stdout, stderr } = await plane.cli(args);
    texts.push(stdout + stderr);
  }
  texts.push(JSON.stringify(await plane.client.call('getConfig', {})));
  await plane.kill('SIGTERM');
  texts.push(plane.log, ...(await planeFiles(plane.data_dir)));
  expect(texts.length).toBeGreaterThan(10);
  for (const text of texts) expect(text).not.toContain(PASSWORD);
});

test('commands about files of the database say what to use instead', async () => {
  plane = await TestPlane.open({ env: env() });
  const backup = await plane.cli(['backup', 'copy.tar']);
  expect(backup).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('back it up with pg_dump, and copy '),
  });
  await plane.kill('SIGTERM');
  const restore = await plane.cli(['restore', 'copy.tar'], { env: { SVC_DATABASE_URL: '' } });
  expect(restore).toMatchObject({ code: 1, stderr: expect.stringContaining('restore it with pg_restore') });
  const { stdout } = await plane.cli(['doctor']);
  expect(stdout).toMatch(/ok {4}database: svc_test_\w+ .*, PostgreSQL \d+/);
  await expect(plane.start({ SVC_DATABASE_URL: '' })).rejects.toThrow('set database.url');
  await plane.start();
});

/** Arguments of the processes whose working directory, environment or parent is the plane's. */
async function argumentsOfSvc(): Promise<string[]> {
  const found: string[] = [];
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (text.includes('svc')) found.push(text);
  }
  return found;
}

/** The text files of a data directory, except the logs of agents. */
async function planeFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')));
}
