import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Config } from '../../../core/config.ts';
import { Problem, problems } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';

const PIN = '12345678';
let home: string;
let server: HttpServer;
let tries_left: number;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-join-'));
  tries_left = 3;
  const user = { id: 'usr_1', username: 'ana', role: 'root' as const, created_at: time };
  server = await openFakeHttp({
    checkJoinPin: ({ body }) => {
      if (body.pin !== PIN)
        throw new Problem('unauthenticated', 'invalid_pin', 'invalid pin', { tries_left: --tries_left });
    },
    createJoinChallenge: () => {
      throw problems.notAllowed();
    },
    join: () => ({ location: '/api/me', body: { token: ROOT_TOKEN, expires_in: 60, user } }),
  });
  // The link is for browsers, and may lead through a proxy that does not run yet.
  writeFileSync(
    join(home, 'join.json'),
    JSON.stringify({ url: 'https://proxy.invalid/join#t=x', token: 'x' }),
  );
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

const loadConfig = async () => ({ get: () => home }) as unknown as Config;
const holderOf = async () => ({ pid: 1, host: 'here', since: time, url: server.url, certificate: null });
const local = { loadConfig, holderOf };
const joinWith = (...typed: string[]) => run(['join'], { home, typed, tty: true, local });

test('svc join asks for the PIN again until it is right, before any other question', async () => {
  const { code, stderr } = await joinWith('1', '2', '1234 5678', 'ana', 'a long password', 'a long password');
  expect(code).toBe(0);
  const [first, second] = ['invalid pin; 2 tries left', 'invalid pin; 1 try left'].map((text) =>
    stderr.indexOf(text),
  );
  expect(first).toBeGreaterThan(0);
  expect(second).toBeGreaterThan(first!);
  expect(stderr.indexOf('Username')).toBeGreaterThan(second!);
});

test('svc join says how to get a new PIN once no tries are left', async () => {
  const { code, stderr } = await joinWith('1', '2', '3');
  expect([code, stderr]).toEqual([
    4,
    expect.stringContaining('svc: invalid pin; no tries left: create a new PIN with svc join-link'),
  ]);
  expect(stderr).not.toContain('Username');
});

test.each([
  ['with this link', ['--link-file', '-'], 'https://proxy.invalid/join#t=x\n'],
  ["with this machine's link", [], ''],
])('svc join %s connects to --url', async (_, argv, input) => {
  const nobody = async () => null;
  const options = ['-u', 'ana', '--url', server.url, '--pin-file', 'pin', '--password-file', 'password'];
  writeFileSync(join(home, 'pin'), PIN);
  writeFileSync(join(home, 'password'), 'a long password');
  const ran = await run(['join', ...options, ...argv], {
    home,
    input,
    local: { loadConfig, holderOf: nobody },
  });
  expect(ran).toMatchObject({ code: 0, stderr: `signed in to ${server.url} as ana\n` });
});

test.each([
  ['join', ['--pin-file', 'pin'], 'svc: invalid pin; 2 tries left'],
  ['join-link', [], 'svc: not allowed'],
])('svc %s asks the plane on this machine, not the one of SVC_URL', async (command, options, answer) => {
  writeFileSync(join(home, 'pin'), '1');
  const ran = await run([command, ...options], { home, env: { SVC_URL: 'http://127.0.0.1:1' }, local });
  expect(ran.stderr).toContain(answer);
});

test('svc join-link says how to get a link from a plane that listens on no loopback address', async () => {
  const { code, stderr } = await run(['join-link'], { home, local });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^svc: not allowed\nsvc: .*restart it/)]);
});

test.each(['/join', '/join/'])('svc join takes a link with the path %s', async (path) => {
  writeFileSync(join(home, 'pin'), '1');
  const options = ['--link-file', '-', '--pin-file', 'pin'];
  const ran = await run(['join', ...options], { home, input: `${server.url}${path}#t=secret\n`, local });
  expect(ran).toMatchObject({ code: 4, stderr: 'svc: invalid pin; 2 tries left\n' });
});

test('svc join does not print the token of a link with another path', async () => {
  const input = 'https://proxy.invalid/other#t=secret\n';
  const { code, stderr } = await run(['join', '--link-file', '-'], { home, input, local });
  expect([code, stderr]).toEqual([2, 'svc: the link in --link-file must end with /join#t=…\n']);
});
