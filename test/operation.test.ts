/** Operating the real program: shutdown, log, settings, health and metrics. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { Client } from '../src/client/client.ts';
import { WITH_NODES } from '../src/testing/agent-node.ts';
import { longTest } from '../src/testing/long.ts';
import { TestPlane } from '../src/testing/plane.ts';
import { makeRepository } from '../src/testing/repository.ts';
import { closeUnlessShared, sharedPlane } from '../src/testing/shared-plane.ts';

let plane: TestPlane | null = null;
const share = sharedPlane();
afterEach(async () => {
  await closeUnlessShared(plane);
  plane = null;
});

async function text(response: Response): Promise<string> {
  let read = '';
  try {
    for await (const chunk of response.body!) read += Buffer.from(chunk).toString();
  } catch {
    // A stream that is cut off has also ended.
  }
  return read;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(20);
}

test('SIGTERM shuts the service down cleanly with open streams, a slow request and running agents', async () => {
  plane = await TestPlane.open();
  const calm = await plane.agent('while :; do echo calm; sleep 0.2; done');
  const stubborn = await plane.agent('trap "" TERM; while :; do echo here; sleep 0.2; done');
  // It ignores the signal once it has printed something.
  await until(async () => (await plane!.output(stubborn.id)).length > 0);
  const params = { agent_id: calm.id };
  const stream = text(await plane.client.open('followAgent', { params, query: {} }));
  // This request takes longer than the shutdown may, so it fails, although the stop continues.
  const slow = plane.client
    .call('stopAgent', { params: { agent_id: stubborn.id }, body: { grace_seconds: 12 } })
    .catch((error: Error) => error);
  await until(async () => plane!.log.includes('agent_stopped'));
  expect(await plane.kill('SIGTERM')).toBe(0);
  expect(await stream).toMatch(/"data":"(?:calm\\n)+"\}\n\n$/);
  expect(await slow).toMatchObject({ code: 'shutdown_interrupted', message: 'service is shutting down' });
  expect(plane.log).not.toContain('shutdown takes too long');

  await plane.start();
  expect(await plane.get(calm.id)).toMatchObject({ status: 'running', session_id: calm.session_id });
  // The accepted stop was carried out.
  expect((await plane.finished(stubborn.id)).status).toBe('cancelled');
});

test('an unhandled rejection is logged and ends the service like a crash, and agents keep running', async () => {
  plane = await TestPlane.prepare();
  const module = join(plane.folder, 'fault.mjs');
  const log = join(plane.folder, 'svc.log');
  await writeFile(module, `process.on('SIGUSR2', () => Promise.reject(new Error('unforeseen')));`);
  await plane.start({ NODE_OPTIONS: `--import=${module}`, SVC_LOGGING_OUTPUT: log });
  await plane.join();
  const agent = await plane.agent('exec sleep 300');
  process.kill(plane.pid, 'SIGUSR2');
  await plane.ended();
  const last = (await readFile(log, 'utf8')).trimEnd().split('\n').at(-1)!;
  expect(JSON.parse(last)).toMatchObject({ level: 'fatal', err: { message: 'unforeseen' } });
  await plane.start();
  expect(await plane.get(agent.id)).toMatchObject({ status: 'running', session_id: agent.session_id });
});

longTest(
  'stop --agents stops more agents than the rate limit allows at once, and stop --kill is like a crash',
  async () => {
    plane = await TestPlane.open({
      env: { SVC_LIMITS_REQUESTS_PER_SECOND: '10', SVC_LIMITS_REQUESTS_BURST: '10' },
    });
    const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
      for (;;) {
        const answer = await call().catch((error) => {
          if (error.kind !== 'rate_limited') throw error;
          return null;
        });
        if (answer !== null) return answer;
        await sleep(500);
      }
    };
    const agents: string[] = [];
    for (let i = 0; i < 20; i++) {
      agents.push((await slowly(() => plane!.agent('exec sleep 600', { name: `a${i}` }))).id);
    }
    const killed = await plane.cli(['stop', '--kill']);
    expect(killed.code).toBe(0);
    await plane.start();
    const stopped = await plane.cli(['stop', '--agents', '--json']);
    expect(JSON.parse(stopped.stdout)).toMatchObject({ agents_stopped: 20 });
    await plane.start();
    for (const id of agents) expect((await slowly(() => plane!.get(id))).status).toBe('cancelled');
  },
);

test('the log file has one JSON record per line with all fields, and is reopened on SIGHUP', async () => {
  plane = await TestPlane.prepare();
  const folder = join(plane.folder, 'log');
  const file = join(folder, 'svc.log');
  await plane.start({ SVC_LOGGING_OUTPUT: file });
  await plane.join();
  const agent = await plane.agent('true');
  await plane.finished(agent.id);
  const records = (await readFile(file, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(records.find(({ event }) => event === 'agent_started')).toMatchObject({
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    level: 'info',
    agent_id: agent.id,
    user_id: agent.owner_id,
    ip: '127.0.0.1',
    workdir: plane.work,
  });
  expect(records.find(({ event }) => event === 'user_login')).toMatchObject({
    agent_id: null,
    workdir: null,
  });

  const writesTo = (path: string) =>
    until(async () => {
      await new Client({ url: plane!.url, token: null })
        .call('login', { body: { username: 'nobody', password: 'x' } })
        .catch(() => {});
      return (await readFile(path, 'utf8').catch(() => '')).includes('user_login_');
    });
  await rename(file, `${file}.1`);
  process.kill(plane.pid, 'SIGHUP');
  await writesTo(file);

  // If the file cannot be reopened, the service continues to write to the old one.
  await rename(folder, `${folder}.old`);
  await writeFile(folder, '');
  process.kill(plane.pid, 'SIGHUP');
  await until(async () =>
    (await readFile(join(`${folder}.old`, 'svc.log'), 'utf8')).includes('still writing to the old one'),
  );
  await rm(folder);
  process.kill(plane.pid, 'SIGHUP');
  await writesTo(file);
});

test.runIf(process.platform === 'linux')(
  'the service survives a log that it cannot write, but does not start with one that it cannot open',
  async () => {
    plane = await TestPlane.open({ env: { SVC_LOGGING_OUTPUT: '/dev/full', SVC_LOGGING_LEVEL: 'debug' } });
    const agent = await plane.agent('echo hello');
    await plane.finished(agent.id);
    expect((await plane.output(agent.id)).toString()).toBe('hello\n');
    expect(await plane.kill('SIGTERM')).toBe(0);
    const nowhere = await plane.cli(['serve'], { env: { SVC_LOGGING_OUTPUT: '/dev/full/log' } });
    expect(nowhere).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^svc: logging\.output \/dev\/full\/log cannot be opened: E[A-Z]+\n$/),
    });
  },
);

test('the log can be text, and includes requests at level debug', async () => {
  plane = await TestPlane.open({ env: { SVC_LOGGING_FORMAT: 'text', SVC_LOGGING_LEVEL: 'debug' } });
  await plane.client.call('getMe');
  await until(async () => /debug request .*operation="getMe" .*status=200/.test(plane!.log));
  expect(plane.log).toMatch(/^\S+Z info {2}plane started version=/m);
  expect(plane.log).not.toContain(plane.token);
});

test('safe paths can be changed while the service runs, and the change survives a restart', async () => {
  plane = await TestPlane.prepare({ env: { SVC_SAFE_PATHS: '' } });
  await mkdir(join(plane.folder, 'config/svc'), { recursive: true });
  const file = join(plane.folder, 'config/svc/config.toml');
  await writeFile(file, `safe_paths = ["${plane.work}"]\n[retention]\ndays = 7\n`);
  await plane.start();
  await plane.join();
  const other = join(plane.folder, 'other');
  await mkdir(other);
  const refused = { message: 'workdir path must be within allowed safe paths' };
  await expect(plane.create({ command: 'true', workdir: other })).rejects.toMatchObject(refused);
  await plane.client.call('updateConfig', { body: { safe_paths: [other] } });
  await plane.create({ command: 'true', workdir: other });
  await expect(plane.create({ command: 'true' })).rejects.toMatchObject(refused);
  await plane.kill();
  await plane.start();
  await plane.create({ command: 'true', workdir: other });
  const shown = await plane.cli(['config', 'show', '--origin', 'safe_paths', 'retention.days']);
  expect(shown.stdout).toBe(`safe_paths\t["${other}"]\tlive\t-\nretention.days\t7\tfile\t${file}:3\n`);
  expect((await plane.cli(['config', 'set', 'safe_paths='])).code).toBe(0);
  await plane.create({ command: 'true' });
  const audit = await plane.client.call('listAudit', { query: { event: 'config_changed' } });
  expect(audit).toMatchObject([
    { details: { key: 'safe_paths' } },
    { details: { key: 'safe_paths', to: [other] } },
  ]);
});

test('agents get their own variables and those that the settings allow, but no others of the service', async () => {
  plane = await TestPlane.open({
    env: { SVC_AGENTS_ENV_ALLOW: 'PATH,HOME', OTHER: 'x', SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET: 'y' },
  });
  const agent = await plane.agent(['env'], { env: { MINE: 'z' } });
  await plane.finished(agent.id);
  const names = (await plane.output(agent.id))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => line.split('=', 1)[0]!);
  expect(names).toEqual(expect.arrayContaining(['HOME', 'MINE', 'PATH', 'SVC_AGENT_ID', 'SVC_SESSION_ID']));
  expect(names.filter((name) => name === 'OTHER' || name.includes('SECRET'))).toEqual([]);
});

test('the default worktree root can be changed while the service runs', async () => {
  plane = await share();
  const root = join(plane.folder, 'trees');
  await plane.client.call('updateConfig', { body: { 'worktree.default_root': root } });
  const agent = await plane.client.call('createAgent', {
    body: { name: 'Wörk', command: 'pwd', worktree_mode: 'create_worktree', start: true },
  });
  expect(agent.workdir).toBe(join(root, `Work-${agent.id}`));
  await plane.finished(agent.id);
  expect((await plane.output(agent.id)).toString()).toBe(`${agent.workdir}\n`);
});

test('a request with only a cursor gets a page of the configured size', async () => {
  plane = await share();
  for (let i = 0; i < 6; i++) await plane.create({ command: 'true', name: `a${i}` });
  await plane.client.call('updateConfig', { body: { 'limits.page_items_default': 2 } });
  const names: string[] = [];
  let cursor: string | undefined;
  let first = true;
  do {
    const query = first ? { limit: 1 } : { cursor };
    const page = await plane.client.call('listAgents', { query });
    if (Array.isArray(page)) throw new Error('not a page');
    expect(page.items.length).toBeLessThanOrEqual(2);
    names.push(...page.items.map(({ name }) => name));
    cursor = page.next_cursor;
    first = false;
  } while (cursor !== undefined);
  await plane.client.call('updateConfig', { body: { 'limits.page_items_default': null } });
  expect(names.filter((name) => /^a\d$/.test(name))).toEqual(['a5', 'a4', 'a3', 'a2', 'a1', 'a0']);
});

test('health needs no token, and metrics need a token of root unless `metrics.open` is set', async () => {
  plane = await share();
  for (const path of ['healthz', 'readyz']) {
    const response = await fetch(`${plane.url}/${path}`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  }
  expect((await fetch(`${plane.url}/metrics`)).status).toBe(401);
  const as = (token: string) =>
    fetch(`${plane!.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const metrics = await (await as(plane.token)).text();
  expect(metrics).toMatch(/^svc_streams_open 0$/m);
  expect(metrics).toMatch(/^svc_unknown_work 0$/m);
  expect(metrics).toMatch(/^svc_http_requests_total\{operation="join",status="201"\} 1$/m);
  const user = { username: 'bob', password: 'a password of bob' };
  await plane.client.call('createUser', { body: user });
  const { token } = await new Client({ url: plane.url, token: null }).call('login', { body: user });
  expect([(await as(token)).status, await (await as(token)).json()]).toEqual([
    401,
    { error: 'root required' },
  ]);
  const watcher = await plane.client.call('createToken', { body: { name: 'watch', scopes: ['metrics'] } });
  expect((await as(watcher.token)).status).toBe(200);
  await plane.client.call('updateConfig', { body: { 'metrics.open': true } });
  expect((await fetch(`${plane.url}/metrics`)).status).toBe(200);
  await plane.client.call('updateConfig', { body: { 'metrics.open': null } });
  expect((await fetch(`${plane.url}/metrics`)).status).toBe(401);
});

test('a common password is refused for new and existing users', async () => {
  plane = await share();
  const error = 'password is too common';
  const body = { username: 'carl', password: '1Qaz2wsx3edc' };
  await expect(plane.client.call('createUser', { body })).rejects.toThrow(error);
  const user = await plane.client.call('createUser', { body: { ...body, password: 'a password of carl' } });
  const update = { params: { user_id: user.id }, body: { password: body.password } };
  await expect(plane.client.call('updateUser', update)).rejects.toThrow(error);
});

test('every 401 says how to authenticate', async () => {
  plane = await share();
  for (const headers of [{}, { authorization: 'Bearer wrong' }] as Record<string, string>[]) {
    const response = await fetch(`${plane.url}/api/me`, { headers });
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
  }
});

test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
  "the start and svc doctor warn if the agents' user cannot enter the worktree root",
  async () => {
    plane = await TestPlane.open({ env: { SVC_AGENTS_RUN_AS: 'nobody' } });
    expect(plane.log).toContain(
      `agents run as nobody, who cannot enter ${join(plane.data_dir, 'worktrees')}`,
    );
    const doctor = await plane.cli(['doctor']);
    expect(doctor.stdout).toContain('who cannot enter');
    await plane.kill();
    const before = plane.log.length;
    await plane.start({ SVC_WORKTREE_DEFAULT_ROOT: '/tmp' });
    expect(plane.log.slice(before)).not.toContain('who cannot enter');
  },
);

test('svc doctor reports folders, nodes and kept worktrees of the running service', async () => {
  plane = await TestPlane.open({ env: WITH_NODES });
  const { client, work, folder } = plane;
  type Check = { name: string; ok: boolean; detail: string };
  const doctor = async (env?: Record<string, string>) => {
    const { stdout, stderr } = await plane!.cli(['doctor', '--json'], { ...(env && { env }) });
    return { checks: JSON.parse(stdout) as Check[], stderr };
  };
  const repo = makeRepository(join(work, 'repo'), { a: 'a\n' });
  const body = { name: 'leaves', command: 'touch new', worktree_repo: repo, start: true } as const;
  const { id } = await client.call('createAgent', { body });
  await plane.finished(id);
  await client.call('deleteAgent', { params: { agent_id: id } });
  const gone = join(folder, 'gone');
  await writeFile(join(folder, 'file'), '');
  await client.call('updateConfig', { body: { 'worktree.repo_roots': [gone, join(folder, 'file')] } });
  const target = { id: 'far', name: 'far', grpc_target: 'https://127.0.0.1:9' };
  await client.call('registerAgentNode', { body: target });
  const { checks } = await doctor();
  const of = (name: string) => checks.filter((check) => check.name === name);
  expect(of('safe path')).toEqual([{ name: 'safe path', ok: true, detail: work }]);
  expect(of('repository root')).toMatchObject([
    { ok: false, detail: `${gone} does not exist` },
    { ok: false, detail: `${join(folder, 'file')} is not a folder` },
  ]);
  expect(of('node far')).toMatchObject([{ ok: false, detail: expect.stringContaining('never connected') }]);
  expect(of('kept worktrees')).toMatchObject([{ ok: true, detail: expect.stringMatching(/^1; /) }]);

  await plane.kill();
  const alone = await doctor({ SVC_URL: '', SVC_TOKEN: '' });
  expect(alone.stderr).toMatch(/^the running service was not asked: none runs on this machine/);
  expect(alone.checks.map(({ name }) => name)).not.toContain('service');
  await plane.start();
});
