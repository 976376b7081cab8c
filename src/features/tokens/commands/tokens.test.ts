import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lacksScope } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN } from '../../../testing/http.ts';

const record = {
  ...{ id: 'tok_1', name: 'ci', created_at: time, last_used_at: null, expires_at: null },
  ...{
    scopes: ['read', 'operate'] as ('read' | 'operate')[],
    agent_ids: ['agt_1'],
    team_ids: [] as string[],
  },
};

let home: string;
let server: HttpServer;
let env: Record<string, string>;
let bodies: unknown[];
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-'));
  bodies = [];
  server = await openFakeHttp({
    listTokens: () => ({ items: [record] }),
    createToken: ({ body }) => {
      bodies.push(body);
      return { location: '/api/tokens/tok_1', body: { ...record, token: 'svc_secret' } };
    },
    listAgents: () => ({ items: [agentRecord({ id: 'agt_1', name: 'one' })] }),
    logout: () => {
      throw lacksScope('manage');
    },
  });
  env = { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
});
afterEach(async () => {
  await server.drain();
  rmSync(home, { recursive: true, force: true });
});

test('tokens create sends scopes and agent ids', async () => {
  const flags = ['--scope', 'read', '--scope', 'operate', '--agent', 'one'];
  const ran = await run(['tokens', 'create', 'ci', ...flags], { home, env });
  expect(ran).toMatchObject({ code: 0, stdout: 'svc_secret\n' });
  expect(ran.stderr).toContain('read,operate');
  expect(bodies).toEqual([
    { name: 'ci', expires_at: null, scopes: ['read', 'operate'], agent_ids: ['agt_1'], team_ids: null },
  ]);
});

test('tokens create without flags sends no scopes or limits', async () => {
  await run(['tokens', 'create', 'ci'], { home, env });
  expect(bodies).toEqual([{ name: 'ci', expires_at: null, agent_ids: null, team_ids: null }]);
});

test('tokens create rejects an unknown scope or agent before it requests a token', async () => {
  const scope = await run(['tokens', 'create', 'ci', '--scope', 'write'], { home, env });
  expect(scope.code).toBe(2);
  expect(scope.stderr).toContain('must be one of: read, operate, manage, admin, metrics');
  const agent = await run(['tokens', 'create', 'ci', '--agent', 'none'], { home, env });
  expect(agent).toMatchObject({ code: 1, stderr: 'svc: agent not found: none\n' });
  expect(bodies).toEqual([]);
});

test('tokens ls shows scopes and limits in the last columns', async () => {
  const { stdout } = await run(['tokens', 'ls'], { home, env });
  expect(stdout).toBe(`tok_1\tci\t${time}\t-\t-\tread,operate\tagt_1\n`);
});

test('logout forgets an API token that may not revoke itself, and warns that it is still valid', async () => {
  const file = join(home, '.config/svc/credentials.json');
  mkdirSync(join(home, '.config/svc'), { recursive: true });
  const hosts = { [server.url]: { token: ROOT_TOKEN, username: 'root' } };
  writeFileSync(file, JSON.stringify({ current: server.url, hosts }));
  const ran = await run(['logout'], { home });
  expect(ran.code).toBe(0);
  expect(ran.stderr).toContain('the API token is still valid');
  expect(JSON.parse(readFileSync(file, 'utf8')).hosts).toEqual({});
});
