import { chmod, mkdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { readStat } from '../src/base/proc.ts';
import { Client, type Frame } from '../src/client/client.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
beforeAll(async () => {
  plane = await TestPlane.open();
});
afterAll(() => plane?.close());

const start = (agent_id: string) => plane.client.call('startAgent', { params: { agent_id } });
const stop = (agent_id: string, grace_seconds = 1) =>
  plane.client.call('stopAgent', { params: { agent_id }, body: { grace_seconds } });
const outcome = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );

async function folder(name: string): Promise<string> {
  const path = join(plane.work, name);
  await mkdir(path);
  return path;
}

test('an agent runs from created to completed, and again after another start', async () => {
  const agent = await plane.create({ command: 'echo hello' });
  expect(agent).toMatchObject({
    status: 'created',
    session_id: null,
    session_count: 0,
    last_seq: 0,
    node_id: 'main',
  });
  await start(agent.id);
  expect(await plane.finished(agent.id)).toMatchObject({
    status: 'completed',
    exit_code: 0,
    reason: null,
    cleanup: expect.any(String),
  });
  await start(agent.id);
  expect(await plane.finished(agent.id)).toMatchObject({ status: 'completed', session_count: 2 });
  expect((await plane.output(agent.id)).toString()).toBe('hello\n');
});

test('one of twenty concurrent starts succeeds, and the others report that the agent is running', async () => {
  const agent = await plane.create({ command: 'echo $$ >>twenty; echo up; sleep 60' });
  const answers = await Promise.all(Array.from({ length: 20 }, () => outcome(start(agent.id))));
  expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
  expect(answers.filter((answer) => answer === 'agent is already running')).toHaveLength(19);
  while (!(await plane.output(agent.id)).includes('up')) await sleep(20);
  expect((await readFile(join(plane.work, 'twenty'), 'utf8')).trim().split('\n')).toHaveLength(1);
  await stop(agent.id);
});

test('a stopped agent is cancelled whatever its exit code, and a concurrent stop gets the same result', async () => {
  const agent = await plane.agent(`trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done`);
  while (!(await plane.output(agent.id)).includes('up')) await sleep(20);
  const stops = await Promise.all([stop(agent.id, 5), stop(agent.id, 5)]);
  for (const one of stops) expect(one).toMatchObject({ status: 'cancelled', exit_code: 0, reason: null });
  expect(await outcome(stop(agent.id))).toBe('agent is not running');
});

test('a command that ignores TERM is killed after the grace period', async () => {
  const agent = await plane.agent(`trap '' TERM; echo up; while :; do sleep 0.05; done`);
  while (!(await plane.output(agent.id)).includes('up')) await sleep(20);
  expect(await stop(agent.id, 0)).toMatchObject({
    status: 'cancelled',
    exit_signal: 'SIGKILL',
    exit_code: null,
  });
});

test('exit codes and signals are distinguished', async () => {
  const code = await plane.agent('exit 143');
  expect(await plane.finished(code.id)).toMatchObject({
    status: 'failed',
    exit_code: 143,
    exit_signal: null,
    reason: 'exit_code',
  });
  const signal = await plane.agent(['/bin/sh', '-c', 'kill -TERM $$']);
  expect(await plane.finished(signal.id)).toMatchObject({
    status: 'failed',
    exit_code: null,
    exit_signal: 'SIGTERM',
    reason: 'signal',
  });
});

test('a missing or non-executable program fails the agent with a reason, and the start returns 200', async () => {
  await writeFile(join(plane.work, 'plain.txt'), 'not a program');
  for (const argv of [['/no/such/program'], ['no-such-program-anywhere'], [join(plane.work, 'plain.txt')]]) {
    const agent = await plane.create({ argv });
    await start(agent.id);
    expect(await plane.finished(agent.id)).toMatchObject({ status: 'failed', reason: 'spawn_failed' });
    const log = await plane.client.call('getLog', {
      params: { agent_id: agent.id },
      query: { type: 'error' as never },
    });
    expect(log).toMatchObject([{ type: 'error', code: 'spawn_failed', error: expect.any(String) }]);
  }
});

test('a start fails if the workdir was deleted or replaced with a symlink', async () => {
  const removed = await folder('gone');
  const swapped = await folder('swapped');
  const outside = await realpath(join(plane.folder));
  const [a, b] = [
    await plane.create({ command: 'pwd', workdir: removed }),
    await plane.create({ command: 'pwd', workdir: swapped }),
  ];
  await rm(removed, { recursive: true });
  await rename(swapped, `${swapped}.was`);
  await symlink(outside, swapped);
  for (const agent of [a, b]) {
    await start(agent.id);
    expect(await plane.finished(agent.id)).toMatchObject({ status: 'failed', reason: 'workdir_refused' });
    expect(await plane.output(agent.id)).toHaveLength(0);
  }
});

test('invalid workdirs are refused with the messages of the contract', async () => {
  await mkdir(`${plane.work}-evil`);
  await symlink('/etc', join(plane.work, 'out'));
  await writeFile(join(plane.work, 'file'), '');
  const refused = (workdir: string) => outcome(plane.create({ command: 'true', workdir }));
  expect(await outcome(plane.client.call('createAgent', { body: { name: 'x', command: 'true' } }))).toBe(
    'workdir is required',
  );
  expect(await refused('work')).toBe('workdir must be absolute');
  for (const path of [
    '/etc',
    `${plane.work}-evil`,
    join(plane.work, 'out'),
    `${plane.work}/../..`,
    join(plane.work, 'out', 'new'),
  ]) {
    expect(await refused(path)).toBe('workdir path must be within allowed safe paths');
  }
  expect(await refused(join(plane.work, 'missing'))).toBe('workdir does not exist');
  for (const path of [`${plane.work}/${'x'.repeat(5000)}`, `${plane.work}/a\0b`, join(plane.work, 'file')]) {
    expect(await refused(path)).toMatch(/^workdir /);
  }
  expect(await plane.client.call('listAgents', { query: { name: 'x' } })).toEqual([]);
});

test('create reports the first missing or invalid field, in the order of the contract', async () => {
  const create = (body: object) => outcome(plane.client.call('createAgent', { body: body as never }));
  expect(await create({})).toBe('name is required');
  expect(await create({ name: 'x' })).toBe('command is required');
  expect(await create({ name: 'x', command: 'true', workdir: plane.work, prompt: 'hello' })).toBe(
    'prompt needs an agent that speaks ACP',
  );
  expect(await create({ name: 'x', command: 'true', workdir: plane.work, node_id: 'far' })).toBe(
    'agent node not found',
  );
});

test('stdin is empty by default; if enabled, it accepts input until end of file', async () => {
  // A program like ripgrep reads stdin if it is a pipe or a file, and searches the folder if it is a device.
  const silent = await plane.agent('cat; [ -c /dev/stdin ]');
  expect((await plane.finished(silent.id)).status).toBe('completed');
  const input = (agent_id: string, body: { data?: string; eof?: boolean }) =>
    plane.client.call('sendInput', { params: { agent_id }, body: body as { data: string } });
  expect(await outcome(input(silent.id, { data: 'x' }))).toBe('agent is not running');
  const no_stdin = await plane.agent('sleep 60');
  expect(await outcome(input(no_stdin.id, { data: 'x' }))).toBe('agent has no stdin');
  await stop(no_stdin.id);

  const agent = await plane.agent('cat', { stdin: true });
  for (let n = 0; n < 20; n++) await input(agent.id, { data: `line ${n} €\n` });
  await plane.kill();
  await plane.start();
  await input(agent.id, { data: 'last', eof: true });
  expect((await plane.finished(agent.id)).status).toBe('completed');
  const expected = `${Array.from({ length: 20 }, (_, n) => `line ${n} €\n`).join('')}last`;
  expect((await plane.output(agent.id)).toString()).toBe(expected);
});

test('an agent gets its own variables and not those of the service', async () => {
  const agent = await plane.agent('env', { env: { COLOUR: 'green' } });
  await plane.finished(agent.id);
  const env = (await plane.output(agent.id)).toString().split('\n');
  expect(env).toContain('COLOUR=green');
  expect(env).toContain(`SVC_AGENT_ID=${agent.id}`);
  expect(
    env
      .filter((line) => line.startsWith('SVC_'))
      .map((line) => line.split('=')[0])
      .sort(),
  ).toEqual(['SVC_AGENT_ID', 'SVC_SESSION_ID']);
  const record = await plane.get(agent.id);
  expect(record.env_keys).toEqual(['COLOUR']);
  expect(JSON.stringify(record)).not.toContain('green');
});

test('svc is on the PATH of an agent', async () => {
  const agent = await plane.agent('svc --version');
  expect((await plane.finished(agent.id)).status).toBe('completed');
  expect((await plane.output(agent.id)).toString()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('leftover processes of a command are killed, or kept and listed', async () => {
  const script = '(trap "" HUP; exec sleep 300) & echo $! >PIDFILE; echo parent done';
  const killed = await plane.agent(script.replace('PIDFILE', 'killed.pid'));
  expect(await plane.finished(killed.id)).toMatchObject({ status: 'completed', leftovers: [] });
  expect(isAlive(await pidIn('killed.pid'))).toBe(false);

  const kept = await plane.agent(script.replace('PIDFILE', 'kept.pid'), { on_exit: 'keep' });
  const record = await plane.finished(kept.id);
  const pid = await pidIn('kept.pid');
  expect(record).toMatchObject({
    status: 'completed',
    leftovers: [{ pid, command: expect.stringContaining('sleep') }],
  });
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, 'SIGKILL');
});

async function pidIn(name: string): Promise<number> {
  return Number(await readFile(join(plane.work, name), 'utf8'));
}

/** A zombie counts as dead. */
function isAlive(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== null && stat.state !== 'Z';
}

test('a running agent accepts a new name and labels, but no new command', async () => {
  const agent = await plane.agent('sleep 60');
  const change = (body: object) => plane.client.call('updateAgent', { params: { agent_id: agent.id }, body });
  expect(await change({ name: 'renamed', labels: { team: 'blue' } })).toMatchObject({
    name: 'renamed',
    labels: { team: 'blue' },
  });
  expect(await outcome(change({ command: 'true' }))).toBe('agent is running');
  await stop(agent.id);
  expect(await change({ argv: ['echo', 'it is'] })).toMatchObject({
    command: "echo 'it is'",
    argv: ['echo', 'it is'],
  });
});

test('an archived agent is left out of lists until it is started again', async () => {
  const agent = await plane.agent('sleep 60', { name: 'shelved' });
  const archive = (archived: boolean) =>
    plane.client.call('updateAgent', { params: { agent_id: agent.id }, body: { archived } });
  const named = async (archived?: boolean) => {
    const found = await plane.client.call('listAgents', { query: { name: 'shelved', archived, limit: 10 } });
    return (found as { items: { id: string }[] }).items.map(({ id }) => id);
  };
  const ls = async (...more: string[]) =>
    (await plane.cli(['agents', 'ls', '--name', 'shelved', ...more])).stdout.split('\t')[0];
  expect(await outcome(archive(true))).toBe('agent is running');
  expect(await plane.cli(['agents', 'archive', agent.id])).toMatchObject({ code: 1, stdout: '' });
  await stop(agent.id);

  const { archived_at } = await archive(true);
  expect(Date.parse(archived_at!)).toBeGreaterThan(0);
  expect((await archive(true)).archived_at).toBe(archived_at);
  expect(await named(true)).toEqual([agent.id]);
  expect(await named(false)).toEqual([]);
  expect(await named()).toEqual([agent.id]);
  expect(await ls()).toBe('');
  expect(await ls('--archived')).toBe(agent.id);

  const namesake = await plane.create({ name: 'shelved', command: 'true' });
  expect((await plane.cli(['agents', 'get', 'shelved'])).stdout).toContain(namesake.id);
  expect(await plane.cli(['agents', 'unarchive', 'shelved'])).toMatchObject({ code: 0 });
  await plane.client.call('deleteAgent', { params: { agent_id: namesake.id } });
  expect((await plane.get(agent.id)).archived_at).toBeNull();
  expect(await plane.cli(['agents', 'archive', 'shelved'])).toMatchObject({ code: 0 });
  expect(await ls()).toBe('');
  expect(await start(agent.id)).toMatchObject({ archived_at: null });
  expect(await ls()).toBe(agent.id);
  await stop(agent.id);
});

test('a running agent is only deleted with `force`, which ends its processes', async () => {
  const agent = await plane.agent('echo $$ >deleted.pid; sleep 300');
  while (!(await readFile(join(plane.work, 'deleted.pid'), 'utf8').catch(() => ''))) await sleep(20);
  const remove = (query: object) =>
    plane.client.call('deleteAgent', { params: { agent_id: agent.id }, query });
  expect(await outcome(remove({}))).toBe('agent is running');
  await remove({ force: true });
  expect(isAlive(await pidIn('deleted.pid'))).toBe(false);
  expect(await outcome(plane.get(agent.id))).toBe('agent not found');
});

test('users see and control only their own agents, and root sees all', async () => {
  const mine = await plane.create({ command: 'true', name: 'of-root' });
  await plane.client.call('createUser', { body: { username: 'bob', password: ROOT.password, role: 'user' } });
  const { token } = await new Client({ url: plane.url }).call('login', {
    body: { username: 'bob', password: ROOT.password },
  });
  const bob = new Client({ url: plane.url, token });
  const his = await bob.call('createAgent', {
    body: { name: 'of-bob', command: 'true', workdir: plane.work },
  });
  expect(((await bob.call('listAgents')) as { id: string }[]).map(({ id }) => id)).toEqual([his.id]);
  const refused = await Promise.all(
    [
      bob.call('getAgent', { params: { agent_id: mine.id } }),
      bob.call('startAgent', { params: { agent_id: mine.id } }),
      bob.call('deleteAgent', { params: { agent_id: mine.id } }),
      bob.call('getLog', { params: { agent_id: mine.id } }),
      bob.open('followAgent', { params: { agent_id: mine.id } }),
    ].map(outcome),
  );
  expect(new Set(refused)).toEqual(new Set(['agent not found']));
  expect(await outcome(bob.call('listUsers'))).toBe('root required');
  expect((await plane.get(his.id)).name).toBe('of-bob');
});

test('a restart policy restarts a failed agent after its backoff, even if the service restarts', async () => {
  const agent = await plane.create({ command: 'echo x >>tries; exit 1', restart_policy: 'on_failure' });
  await start(agent.id);
  await plane.finished(agent.id);
  await plane.kill();
  await plane.start();
  const failures = (frames: Frame[]) => frames.filter(({ data }) => data.status === 'failed').length;
  await plane.frames(agent.id, (frames) => failures(frames) === 2);
  await plane.client.call('updateAgent', {
    params: { agent_id: agent.id },
    body: { restart_policy: 'never' },
  });
  expect(await readFile(join(plane.work, 'tries'), 'utf8')).toBe('x\nx\n');
});

test('the same idempotency key returns the same agent and starts it once', async () => {
  const body = { name: 'once', command: 'sleep 60', workdir: plane.work };
  const first = await plane.client.call('createAgent', { body, idempotency_key: 'k1' });
  const again = await plane.client.call('createAgent', { body, idempotency_key: 'k1' });
  expect(again.id).toBe(first.id);
  const other = plane.client.call('createAgent', { body: { ...body, name: 'other' }, idempotency_key: 'k1' });
  expect(await outcome(other)).toBe('idempotency key reused with a different request');
  const params = { agent_id: first.id };
  const starts = await Promise.all(
    Array.from({ length: 5 }, () =>
      outcome(plane.client.call('startAgent', { params, idempotency_key: 'k2' })),
    ),
  );
  expect(starts).toEqual(Array(5).fill('ok'));
  expect((await plane.get(first.id)).session_count).toBe(1);
  await stop(first.id);
});

test('a workdir that the service cannot enter is not fatal to the service', async () => {
  const closed = await folder('closed');
  await chmod(closed, 0o000);
  const agent = await plane.create({ command: 'pwd', workdir: closed });
  await start(agent.id);
  expect((await plane.finished(agent.id)).status).toMatch(/completed|failed/);
});
