/** `svc doctor` with a running service. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { problems } from '../core/problem.ts';
import type { HttpServer } from '../server/server.ts';
import { time } from '../testing/agent-record.ts';
import { type RunOptions, run } from '../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../testing/http.ts';
import type { DoctorOptions } from './context.ts';

/** Where no service listens. */
const NOBODY = 'http://127.0.0.1:1';

let home: string;
let server: HttpServer;
/** What the checks of the machine were asked to leave out. */
let asked: DoctorOptions | undefined;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-'));
  server = await openFakeHttp({
    getDiagnosis: () => ({
      version: '0.2.0',
      folders: [
        { setting: 'safe_paths', path: '/srv/work', problem: null },
        { setting: 'worktree.repo_roots', path: '/srv/gone', problem: 'does not exist' },
      ],
    }),
    listAgentNodes: () => ({
      items: [
        node('near', {}),
        node('old', { version: '0.1.0' }),
        node('away', { status: 'unreachable' }),
        node('new', { status: 'connecting', last_seen_at: null, version: null }),
        node('odd', { worktree_root_problem: '/trees is not allowed' }),
        node('full', { unrecovered_sessions: 7 }),
      ],
    }),
    listWorktrees: ({ query }) => {
      expect(query.state).toBe('kept');
      return { items: [kept('agt_1'), kept('agt_2')] };
    },
  });
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

const node = (id: string, fields: object) => ({
  ...{ id, name: id, grpc_target: 'https://node:1', tls_server_name: null, default_worktree_root: null },
  ...{ worktree_root_problem: null, unrecovered_sessions: 0, status: 'connected' as const },
  ...{ version: '0.2.0', agents: 0 },
  ...{ last_seen_at: time, created_at: time, updated_at: time, ...fields },
});
const kept = (id: string) => ({
  ...{ id, state: 'kept' as const, node_id: 'main', workdir: `/w/${id}`, repo: '/r', branch: null },
  ...{ agent_name: 'a', agent_status: null, owner_id: 'usr_1', team_id: null, run_id: null, member_id: null },
  ...{ reason: 'untracked files', kept_at: time, diff: null },
});

function doctor(argv: string[] = [], options: Partial<RunOptions> = {}) {
  const local = {
    doctor: async (_: unknown, given?: DoctorOptions) => {
      asked = given;
      return [{ name: 'git', ok: true, detail: '2' }];
    },
    ...options.local,
  };
  return run(['doctor', ...argv], { home, ...options, local });
}

const holderOf = () =>
  Promise.resolve({ pid: 1, host: 'here', since: time, url: server.url, certificate: null });

function signIn(token: string, current: string | null, host = server.url): void {
  mkdirSync(join(home, '.config', 'svc'), { recursive: true });
  const hosts = { [host]: { token, username: 'ana' } };
  writeFileSync(join(home, '.config', 'svc', 'credentials.json'), JSON.stringify({ current, hosts }));
}

test('reports the folders, nodes and kept worktrees of the service on this machine', async () => {
  signIn(ROOT_TOKEN, null);
  const { code, stdout, stderr } = await doctor([], { local: { holderOf } });
  expect(stdout.split('\n')).toEqual([
    'ok    git: 2',
    `ok    service: ${server.url}, svc 0.2.0`,
    'ok    safe path: /srv/work',
    'FAIL  repository root: /srv/gone does not exist',
    '      create it, or remove it from worktree.repo_roots (svc config set)',
    'ok    node near: connected, svc 0.2.0',
    'ok    node old: connected, svc 0.1.0; the service runs 0.2.0',
    `FAIL  node away: unreachable, since ${time}`,
    '      svc nodes test away',
    `FAIL  node new: connecting, never connected, registered ${time}`,
    '      svc nodes test new',
    'FAIL  node odd: /trees is not allowed',
    '      change its safe_paths, or its default_worktree_root (svc nodes set)',
    'FAIL  node full: sessions on it that the service does not know and has not recovered: 7',
    '      delete agents labeled recovered=true, then restart svc on the node',
    'ok    kept worktrees: 2; to list them: svc worktrees ls --kept',
    '',
  ]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'svc: 5 of 11 checks failed\n' });
  expect(asked).toEqual({ skip_folders: true });
});

test('prints the checks of the service as JSON too', async () => {
  const env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
  const { stdout } = await doctor(['--json'], { env });
  expect(JSON.parse(stdout)).toContainEqual({
    ...{ name: 'node away', ok: false, detail: `unreachable, since ${time}` },
    hint: 'svc nodes test away',
  });
});

test('asks the service of the last sign-in if none runs here, and still checks the folders of this machine', async () => {
  signIn(ROOT_TOKEN, server.url);
  expect((await doctor()).stdout).toContain(`service: ${server.url}`);
  expect(asked).toEqual({ skip_folders: false });
});

test.each<[string, () => void, Partial<RunOptions>, RegExp]>([
  ['no service runs', () => {}, {}, /none runs on this machine, and you are not signed in to another one$/],
  ['nobody is signed in', () => {}, { local: { holderOf } }, /not signed in to http\S+: run svc login http/],
  ['the token is invalid', () => signIn('old', null), { local: { holderOf } }, /: invalid token$/],
  ['it does not answer', () => signIn(ROOT_TOKEN, NOBODY, NOBODY), {}, /: http:\S+ does not answer$/],
])('if %s, one line says so, and the checks of this machine decide', async (_, prepare, options, why) => {
  prepare();
  const { code, stdout, stderr } = await doctor([], options);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'ok    git: 2\n' });
  expect(stderr).toMatch(/^the running service was not asked: .*\n$/);
  expect(stderr.trimEnd()).toMatch(why);
  expect(asked).toEqual({ skip_folders: false });
});

test('fails if --url does not answer', async () => {
  const { code, stdout } = await doctor(['--url', NOBODY], { env: { SVC_TOKEN: ROOT_TOKEN } });
  expect(stdout).toContain('FAIL  service: http://127.0.0.1:1 does not answer\n');
  expect(code).toBe(1);
});

test('says what a user who is not root cannot check, and checks the rest', async () => {
  await server.drain();
  server = await openFakeHttp({
    getDiagnosis: () => Promise.reject(problems.rootRequired()),
    listAgentNodes: () => Promise.reject(problems.rootRequired()),
    listWorktrees: () => ({ items: [] }),
  });
  const { code, stdout, stderr } = await doctor([], { env: { SVC_URL: server.url, SVC_TOKEN: USER_TOKEN } });
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: `ok    git: 2\nok    service: ${server.url}\nok    kept worktrees: none\n`,
    stderr: `the folders of ${server.url} were not checked: root required\nthe nodes of ${server.url} were not checked: root required\n`,
  });
});
