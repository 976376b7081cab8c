import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Config } from '../../../core/config.ts';
import { problems } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';
import type { NodeSummary } from '../../nodes/rules.ts';

let home: string;
let server: HttpServer;
let allowed: unknown[];
/** The nodes that agents can run on; null if the service cannot list them. */
let nodes: NodeSummary[] | null;
const main: NodeSummary = {
  ...{ id: 'main', name: 'Main Node', status: 'connected', has_default_root: true },
  folders: null,
  actor_calls: true,
};
beforeEach(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'svc-join-')));
  allowed = [];
  nodes = [main];
  const user = { id: 'usr_1', username: 'ana', role: 'root' as const, created_at: time };
  server = await openFakeHttp({
    checkJoinPin: () => {},
    join: () => ({ location: '/api/me', body: { token: ROOT_TOKEN, expires_in: 60, user } }),
    listNodes: () => {
      if (nodes === null) throw problems.draining();
      return { items: nodes };
    },
    allowFolder: (call) => {
      const { body } = call;
      allowed.push(body);
      if (body.path.endsWith('/dev')) call.hijack().destroy();
      if (body.path.includes('code')) throw problems.workdirNotSafe();
      return { folders: [body.path] };
    },
  });
  writeFileSync(join(home, 'join.json'), JSON.stringify({ url: `${server.url}/join#t=x`, token: 'x' }));
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

const loadConfig = async () => ({ get: () => home }) as unknown as Config;
const joinWith = (...answers: string[]) => {
  const typed = ['12345678', 'ana', 'a long password', 'a long password', ...answers];
  const holderOf = async () => ({ pid: 1, host: 'here', since: time, url: server.url, certificate: null });
  return run(['join'], { home, typed, tty: true, local: { loadConfig, holderOf } });
};

test('svc join adds the folder that holds repositories to safe_paths, if you agree', async () => {
  mkdirSync(join(home, 'code'));
  mkdirSync(join(home, 'projects/app/.git'), { recursive: true });
  const { code, stderr } = await joinWith('y');
  expect([code, stderr]).toEqual([0, expect.stringContaining(`agents may work in ${home}/projects\n`)]);
  expect(allowed).toEqual([{ setting: 'safe_paths', path: `${home}/projects` }]);
});

test('svc join changes nothing if you skip the question, or if no repositories are found', async () => {
  const without = await joinWith();
  expect([without.code, without.stderr.includes('Allow')]).toEqual([0, false]);
  mkdirSync(join(home, 'src/app/.git'), { recursive: true });
  const { code, stderr } = await joinWith('');
  expect([code, stderr]).toEqual([0, expect.stringContaining('svc config allow FOLDER')]);
  expect(allowed).toEqual([]);
});

test('svc join succeeds even if the folder is rejected', async () => {
  mkdirSync(join(home, 'code/app/.git'), { recursive: true });
  const { code, stderr } = await joinWith('yes');
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining(`${home}/code is not allowed yet: workdir path`),
  ]);
});

test('svc join does not ask if no agents run on the machine of the service', async () => {
  mkdirSync(join(home, 'projects/app/.git'), { recursive: true });
  nodes = [{ ...main, id: 'box', name: 'The box' }];
  const { code, stderr } = await joinWith();
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('Allow agents')]);
  expect(allowed).toEqual([]);
});

test('svc join succeeds even if the service does not answer', async () => {
  mkdirSync(join(home, 'dev/app/.git'), { recursive: true });
  const refused = await joinWith('yes');
  expect([refused.code, refused.stderr]).toEqual([
    0,
    expect.stringContaining(`${home}/dev is not allowed yet: ${server.url} does not answer\n`),
  ]);
  nodes = null;
  const unlisted = await joinWith('yes');
  expect([unlisted.code, unlisted.stderr]).toEqual([
    0,
    expect.stringContaining(`${home}/dev is not allowed yet: service is shutting down\n`),
  ]);
});

test('at the question of svc join, Ctrl-D means no, and Ctrl-C interrupts', async () => {
  mkdirSync(join(home, 'src/app/.git'), { recursive: true });
  const ended = await joinWith('\x04');
  expect([ended.code, ended.stderr]).toEqual([
    0,
    expect.stringContaining('\nto allow a folder later: svc config allow FOLDER\n'),
  ]);
  const interrupted = await joinWith('\x03');
  expect([interrupted.code, interrupted.stderr]).toEqual([130, expect.not.stringContaining('later')]);
  expect(allowed).toEqual([]);
});
