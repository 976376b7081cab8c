import { execFileSync } from 'node:child_process';
import fs, { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sleep } from '../../base/async.ts';
import { openTestNode } from '../../testing/local-node.ts';
import { asUser, findUser, type RunAs } from '../confinement/run-as.ts';
import { directExec } from '../processes/exec.ts';
import { ActorFiles } from './actor-files.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;
const address = { endpoint: 'https://127.0.0.1:8081', server_name: null, ca: 'PEM' };

let data_dir: string;
/** The folder that replaces /run. */
let run_dir: string;

beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'svc-data-'));
  run_dir = await mkdtemp(join(tmpdir(), 'svc-run-'));
});
afterEach(async () => {
  for (const folder of [data_dir, run_dir]) await rm(folder, { recursive: true, maxRetries: 5 });
});

const open = (run_as: RunAs | null = null, private_folders = false) =>
  ActorFiles.open({ data_dir, run_as, private_folders, env: { RUNTIME_DIRECTORY: `${run_dir}:/other` } });
const mode = async (path: string) => (await stat(path)).mode & 0o777;

test('a session finds its token, the authority and the current endpoint', async () => {
  const files = await open();
  await files.announce(address);
  await files.storeToken('ses_a', 'ses_a.secret');
  const dir = join(data_dir, 'actor');
  expect(files.environment('ses_a')).toEqual({
    SVC_ACTOR_ENDPOINT: 'https://127.0.0.1:8081',
    SVC_ACTOR_TOKEN_FILE: join(dir, 'ses_a.token'),
    SVC_ACTOR_CA_FILE: join(dir, 'ca.pem'),
  });
  expect(await readFile(join(dir, 'ses_a.token'), 'utf8')).toBe('ses_a.secret\n');
  expect([await mode(dir), await mode(join(dir, 'ses_a.token'))]).toEqual([0o700, 0o600]);

  await files.announce({ endpoint: 'https://127.0.0.1:9', server_name: 'web-1.example', ca: 'NEW' });
  expect(JSON.parse(await readFile(join(dir, 'actor.json'), 'utf8'))).toEqual({
    endpoint: 'https://127.0.0.1:9',
    server_name: 'web-1.example',
  });
  expect(await readFile(join(dir, 'ca.pem'), 'utf8')).toBe('NEW');
});

test('publishes no authority without TLS', async () => {
  const files = await open();
  await files.announce({ endpoint: 'http://127.0.0.1:8081', server_name: null, ca: null });
  expect(Object.keys(files.environment('ses_a'))).toEqual(['SVC_ACTOR_ENDPOINT', 'SVC_ACTOR_TOKEN_FILE']);
});

test('a token waits for the first announcement; if that fails, agents get no variables', async () => {
  const files = await open();
  const order: string[] = [];
  const kept = files.storeToken('ses_a', 'x').then(() => order.push('kept'));
  expect(files.environment('ses_a')).toEqual({});
  await rm(join(data_dir, 'actor'), { recursive: true });
  await expect(files.announce(address).finally(() => order.push('announced'))).rejects.toThrow('ENOENT');
  await expect(kept).rejects.toThrow('ENOENT');
  expect(order).toEqual(['announced']);
  expect(files.environment('ses_a')).toEqual({});
});

test('deletes the tokens of ended sessions, including those that ended while the service was down', async () => {
  const files = await open();
  await files.announce(address);
  for (const id of ['ses_a', 'ses_b', 'ses_c']) await files.storeToken(id, 'x');
  await files.drop('ses_a');
  await files.drop('ses_a');
  await writeFile(join(data_dir, 'actor', 'cut-short.tmp'), 'x');
  await files.sweep(new Set(['ses_b']));
  expect((await readdir(join(data_dir, 'actor'))).sort()).toEqual(['actor.json', 'ca.pem', 'ses_b.token']);
});

test('an announcement reaches all other sessions if some folders are gone or cannot be written', async () => {
  const files = await open(null, true);
  await files.announce(address);
  const dir = join(data_dir, 'actor');
  const link = (n: number) => symlink('gone', join(dir, `ses_gone${n}.own`));
  for (const n of [1, 2, 3]) await link(n);
  await files.storeToken('ses_a', 'x');
  for (const n of [4, 5, 6]) await link(n);
  const endpoint = async () => JSON.parse(await readFile(join(dir, 'ses_a.own/actor.json'), 'utf8')).endpoint;
  await files.announce({ ...address, endpoint: 'https://127.0.0.1:9' });
  expect(await endpoint()).toBe('https://127.0.0.1:9');
  for (const n of [1, 2]) await writeFile(join(dir, `ses_file${n}.own`), '');
  await expect(files.announce({ ...address, endpoint: 'https://127.0.0.1:10' })).rejects.toThrow(
    'cannot write the address for 2 sessions',
  );
  expect(await endpoint()).toBe('https://127.0.0.1:10');
  expect((await readdir(dir)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

test('a session that is stored during an announcement gets the new address', async () => {
  const files = await open(null, true);
  await files.announce(address);
  const path = join(data_dir, 'actor/ses_a.own/actor.json');
  const reached = Promise.withResolvers<void>();
  const allowed = Promise.withResolvers<void>();
  const { rename } = fs;
  const spy = vi
    .spyOn(fs, 'rename')
    .mockImplementationOnce(rename)
    .mockImplementationOnce(async (...args) => {
      reached.resolve();
      await allowed.promise;
      await rename(...args);
    });
  syncBuiltinESMExports();
  try {
    const stored = files.storeToken('ses_a', 'x');
    await reached.promise;
    const announced = files.announce({ ...address, endpoint: 'https://127.0.0.1:9' });
    // Without waiting for the session, the announcement would write its folder now.
    await Promise.race([announced, sleep(200)]);
    allowed.resolve();
    await Promise.all([stored, announced]);
  } finally {
    spy.mockRestore();
    syncBuiltinESMExports();
  }
  expect(JSON.parse(await readFile(path, 'utf8')).endpoint).toBe('https://127.0.0.1:9');
});

test.runIf(as_root)(
  'only another user’s agents can read their tokens, and they cannot list them',
  async () => {
    const run_as = await findUser(directExec, 'nobody');
    await mkdir(join(data_dir, 'actor'));
    execFileSync('chmod', ['755', run_dir]);
    const files = await open(run_as);
    await files.announce(address);
    await files.storeToken('ses_a', 'secret');
    const { SVC_ACTOR_TOKEN_FILE: token = '', SVC_ACTOR_CA_FILE: ca = '' } = files.environment('ses_a');
    expect(token.startsWith(`${run_dir}/svc-actor-`)).toBe(true);
    const run = async (user: RunAs, argv: [string, ...string[]]) => {
      const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' };
      const result = await directExec.run(asUser(argv, user), {
        cwd: '/',
        env,
        output_bytes_max: 4_096,
        timeout_ms: 30_000,
      });
      return result.code === 0 ? result.stdout.toString() : result.code;
    };
    expect(await run(run_as, ['cat', token])).toBe('secret\n');
    expect(await run(run_as, ['cat', ca])).toBe('PEM');
    const dir = join(token, '..');
    expect(await run(run_as, ['ls', dir])).not.toBe(0);
    expect(await run(run_as, ['touch', join(dir, 'x')])).not.toBe(0);
    const stranger = { ...run_as, uid: run_as.uid - 1, gid: run_as.gid - 1 };
    expect(await run(stranger, ['cat', token])).not.toBe(0);
    // This folder dates from before another user was configured.
    await expect(stat(join(data_dir, 'actor'))).rejects.toThrow('ENOENT');
  },
);

test.runIf(as_root)('rejects a folder that another user created', async () => {
  const run_as = await findUser(directExec, 'nobody');
  await (await open(run_as)).announce(address);
  const [name = ''] = await readdir(run_dir);
  const dir = join(run_dir, name);
  await rm(dir, { recursive: true });
  await symlink('/', dir);
  await expect(open(run_as)).rejects.toThrow(`${dir} does not belong to this service`);
  await rm(dir);
  await mkdir(dir);
  execFileSync('chown', [`${run_as.uid}`, dir]);
  await expect(open(run_as)).rejects.toThrow(`${dir} does not belong to this service`);
  await rm(run_dir, { recursive: true });
  await expect(open(run_as)).rejects.toThrow('cannot be created (ENOENT)');
  await mkdir(run_dir);
});

test('a node gives a session its token, stores it nowhere else, and deletes it at the end', async () => {
  const files = await open();
  await files.announce(address);
  const node = await openTestNode(data_dir, { actor_files: files });
  const ended = Promise.withResolvers<void>();
  await node.attach({
    snapshot: async () => {},
    fact: ({ body }) => body.kind === 'ended' && ended.resolve(),
    wake: () => {},
  });
  try {
    const launch = {
      ...{ session_id: 'ses_a', plane_id: 'pln_a', agent_id: 'agt_a', agent_name: 'a', owner_id: 'usr_a' },
      argv: ['/bin/sh', '-c', 'cat "$SVC_ACTOR_TOKEN_FILE"; env >&2'],
      ...{ workdir: data_dir, env: { SVC_ACTOR_ENDPOINT: 'https://evil.example' }, stdin: false },
      on_exit: 'kill' as const,
    };
    const view = await node.start({ ...launch, actor_token: 'ses_a.secret' });
    expect(JSON.stringify(view)).not.toContain('secret');
    await ended.promise;
    const read = async (stream: 'stdout' | 'stderr') =>
      Buffer.from(await node.read('ses_a', stream, 0, 65_536)).toString();
    expect(await read('stdout')).toBe('ses_a.secret\n');
    expect(await read('stderr')).toContain('\nSVC_ACTOR_ENDPOINT=https://127.0.0.1:8081\n');
    expect(await read('stderr')).not.toContain('secret');
    const launched = await readFile(join(data_dir, 'sessions/ses_a/launch.json'), 'utf8');
    expect(launched).not.toContain('secret');
    const left = async () =>
      expect((await readdir(join(data_dir, 'actor'))).sort()).toEqual(['actor.json', 'ca.pem']);
    await vi.waitFor(left, { timeout: 20_000 });
  } finally {
    await node.close();
  }
});
