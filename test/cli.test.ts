import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { longTest } from '../src/testing/long.ts';
import { ROOT, SVC, TestPlane } from '../src/testing/plane.ts';
import { closeUnlessShared, sharedPlane } from '../src/testing/shared-plane.ts';

let plane: TestPlane | null = null;
const share = sharedPlane();
afterEach(async () => {
  await closeUnlessShared(plane);
  plane = null;
});

test('a user joins, runs an agent and reads its output with the CLI alone', async () => {
  plane = await TestPlane.prepare();
  await plane.start();
  const env = { SVC_TOKEN: '', SVC_URL: '' };
  const { pin } = JSON.parse(await readFile(join(plane.data_dir, 'join.json'), 'utf8'));
  const pinFile = join(plane.folder, 'pin');
  await writeFile(pinFile, `${pin.slice(0, 4)} ${pin.slice(4)}\n`);
  const wrongFile = join(plane.folder, 'wrong-pin');
  await writeFile(wrongFile, 'no\n');
  const wrong = await plane.cli(['join', '--pin-file', wrongFile, '-u', ROOT.username], { env, input: '' });
  expect(wrong).toMatchObject({ code: 4, stdout: '', stderr: 'svc: invalid pin; 4 tries left\n' });
  const joined = await plane.cli(['join', '--pin-file', pinFile, '-u', ROOT.username], {
    env,
    input: `${ROOT.password}\n`,
  });
  expect(joined).toMatchObject({ code: 0, stdout: '' });
  expect((await plane.cli(['join-link'], { env })).stderr).toBe('svc: root already initialized\n');

  const made = await plane.cli(
    ['agents', 'create', 'one', '-w', 'work', '--follow', '-c', 'echo out; echo err >&2; exit 3'],
    { env },
  );
  expect(made.code).toBe(3);
  expect(made.stdout.split('\n').sort()).toEqual(['', 'err', 'out']);
  expect((await plane.cli(['logs', 'one', '--stream', 'stdout'], { env })).stdout).toBe('out\n');
  expect((await plane.cli(['agents', 'output', 'one', '--stream', 'stderr'], { env })).stdout).toBe('err\n');
  expect((await plane.cli(['agents', 'wait', 'one'], { env })).code).toBe(3);
  const ls = await plane.cli(['agents', 'ls'], { env });
  expect(ls.stdout).toMatch(/^agt_\w+\tone\tfailed \(3\)\tmain\t/);
  expect((await plane.cli(['logout'], { env })).code).toBe(0);
  expect((await plane.cli(['agents', 'ls'], { env })).code).toBe(4);
  const login = await plane.cli(['login', plane.url, '-u', ROOT.username], { env, input: ROOT.password });
  expect(login.code).toBe(0);
  expect((await plane.cli(['whoami', '--json'], { env })).stdout).toContain('"username":"ana"');
});

test('logs -f neither loses nor repeats output when the plane is killed and restarted', async () => {
  plane = await share();
  const lines = 400;
  const agent = await plane.agent(`i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo $i; sleep 0.01; done`);
  const child = spawn(SVC, ['logs', agent.id, '-f'], {
    cwd: plane.folder,
    env: { ...plane.env, SVC_URL: plane.url, SVC_TOKEN: plane.token },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    let text = '';
    const reached = (count: number) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (text.split('\n').length <= count) return;
          child.stdout.off('data', check);
          resolve();
        };
        child.stdout.on('data', check);
        check();
      });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    for (const count of [20, 150]) {
      await reached(count);
      await plane.kill('SIGKILL');
      await plane.start();
    }
    await reached(lines);
    expect(text).toBe(Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join(''));
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
  } finally {
    child.kill('SIGKILL');
  }
});

test('Ctrl-C ends a command that reads standard input', async () => {
  plane = await share();
  const { id } = await plane.create({ command: 'cat', stdin: true, start: true });
  const child = spawn(SVC, ['agents', 'input', id], {
    cwd: plane.folder,
    env: { ...plane.env, SVC_URL: plane.url, SVC_TOKEN: plane.token },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  try {
    const ended = once(child, 'exit');
    child.stdin.write('read\n');
    await expect.poll(async () => String(await plane!.output(id))).toBe('read\n');
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
  } finally {
    child.kill('SIGKILL');
    await plane.client.call('deleteAgent', { params: { agent_id: id }, query: { force: true } });
  }
});

test('a second start names the process that uses the data directory', async () => {
  plane = await share();
  const second = await plane.cli(['--listen', '127.0.0.1:0']);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(`data directory ${plane.data_dir} is in use by pid ${plane.pid} on `);
  expect(second.stderr).toContain(`listening on ${plane.url}`);
});

test('a failed start prints the reason in one line and releases the data directory', async () => {
  plane = await share();
  const data = { SVC_DATA_DIR: join(plane.folder, 'other') };
  const taken = await plane.cli(['--listen', plane.url.slice(7)], { env: data });
  expect(taken.code).toBe(1);
  expect(taken.stderr).toContain(`svc: server.listen ${plane.url.slice(7)} is in use by pid ${plane.pid} (`);
  const open = await plane.cli(['--listen', '0.0.0.0:0'], { env: data });
  expect(open).toMatchObject({ code: 1, stdout: '' });
  expect(open.stderr).toMatch(/^svc: server\.listen 0\.0\.0\.0:0 can be reached from other machines/);
  await writeFile(join(plane.folder, 'bad.toml'), '[server]\nlissten = "x"\n');
  const tls = { SVC_SERVER_TLS_CERT: join(plane.folder, 'bad.toml'), SVC_SERVER_TLS_KEY: '/no/such.key' };
  const noKey = await plane.cli(['--listen', '127.0.0.1:0'], { env: { ...data, ...tls } });
  expect(noKey.stderr).toContain('svc: server.tls.key /no/such.key cannot be read: ENOENT\n');
  const noPem = { ...data, ...tls, SVC_SERVER_TLS_KEY: tls.SVC_SERVER_TLS_CERT };
  const bad = await plane.cli(['--listen', '127.0.0.1:0'], { env: noPem });
  expect(bad.stderr).toContain('svc: server.tls.cert and server.tls.key cannot be used: ');
  const typo = await plane.cli(['--config', 'bad.toml'], { env: data });
  expect(typo.stderr).toBe(
    `svc: unknown key server.lissten: did you mean server.listen? (${join(plane.folder, 'bad.toml')}:2)\n`,
  );
});

test('settings can change while the plane runs, and `config show` prints their origin', async () => {
  plane = await TestPlane.open({ env: { SVC_RETENTION_DAYS: '9' } });
  const fixed = await plane.cli(['config', 'set', 'retention.days=5']);
  expect(fixed).toMatchObject({ code: 1, stderr: 'svc: retention.days is fixed by SVC_RETENTION_DAYS\n' });
  expect((await plane.cli(['config', 'set', 'auth.min_password_length=40'])).code).toBe(0);
  const refused = await plane.cli(['users', 'create', 'bob'], { input: 'longer than twelve' });
  expect(refused).toMatchObject({ code: 1, stderr: 'svc: password must be at least 40 characters\n' });
  await plane.kill('SIGKILL');
  await plane.start();
  const shown = await plane.cli([
    'config',
    'show',
    '--origin',
    'auth.min_password_length',
    'retention.days',
    'server.role',
  ]);
  expect(shown.stdout.split('\n')).toEqual([
    'server.role\t"plane"\tdefault\t-',
    'auth.min_password_length\t40\tlive\t-',
    'retention.days\t9\tenv\tSVC_RETENTION_DAYS',
    '',
  ]);
});

test('stop leaves agents running, and stop --agents stops them', async () => {
  plane = await share();
  const agent = await plane.agent('exec sleep 600');
  expect((await plane.cli(['stop'])).code).toBe(0);
  await plane.ended();
  expect(await plane.cli(['stop'])).toMatchObject({
    code: 1,
    stderr: `svc: no plane is running on ${plane.data_dir}\n`,
  });
  await plane.start();
  expect(await plane.get(agent.id)).toMatchObject({ status: 'running', session_id: agent.session_id });
  const stopped = await plane.cli(['stop', '--agents', '--json']);
  expect(JSON.parse(stopped.stdout)).toMatchObject({ agents_stopped: 1 });
  await plane.start();
  expect((await plane.get(agent.id)).status).toBe('cancelled');
});

longTest('a plane restored from a backup uses no event number twice', async () => {
  plane = await share();
  const before = await plane.agent('echo before');
  await plane.finished(before.id);
  const file = join(plane.folder, 'b.tgz');
  expect((await plane.cli(['backup', 'b.tgz'])).code).toBe(0);
  await plane.client.call('startAgent', { params: { agent_id: before.id } });
  const { last_seq } = await plane.finished(before.id);
  expect((await plane.cli(['restore', file])).stderr).toContain(`is in use by pid ${plane.pid}`);
  await plane.kill('SIGTERM');
  expect((await plane.cli(['restore', file])).code).toBe(0);
  await plane.start();
  const { stdout } = await plane.cli(['logs', before.id, '--json']);
  const events = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const gap = events.find(({ code }) => code === 'log_gap');
  expect(gap.to).toBe(last_seq);
  expect(gap.seq).toBe(last_seq + 1);
  await rm(file);
  expect(existsSync(join(plane.data_dir, 'svc.db'))).toBe(true);
});

test('doctor reports a healthy plane', async () => {
  plane = await share();
  const { stdout } = await plane.cli(['doctor', '--json']);
  const checks: { name: string; ok: boolean; detail: string }[] = JSON.parse(stdout);
  expect(checks.find(({ name }) => name === 'plane')).toMatchObject({ ok: true });
  expect(checks.find(({ name }) => name === 'listener')!.detail).toContain(`held by pid ${plane.pid}`);
});

test('the first start prints the sign-up link and the PIN without a terminal; a start after the join does not', async () => {
  plane = await TestPlane.prepare();
  await plane.start();
  const { url, pin } = JSON.parse(await readFile(join(plane.data_dir, 'join.json'), 'utf8'));
  expect(plane.log).toContain(`Open   ${url.replace('127.0.0.1', 'localhost')}\n`);
  expect(plane.log).toContain(`PIN    ${pin}\n`);
  await plane.join();
  await plane.kill('SIGTERM');
  const before = plane.log.length;
  await plane.start();
  expect(plane.log.slice(before)).not.toContain('PIN');
});
