import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Problem, problems } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../../../testing/http.ts';
import type { HealthReport, NodeRecord, RepositoryList } from '../rules.ts';

const time = '2026-01-02T03:04:05.678Z';
const box: NodeRecord = {
  id: 'box',
  name: 'The box',
  grpc_target: 'https://box:8081',
  tls_server_name: null,
  default_worktree_root: null,
  worktree_root_problem: null,
  unrecovered_sessions: 0,
  status: 'connected',
  version: '1.2.3',
  agents: 4,
  last_seen_at: time,
  created_at: time,
  updated_at: time,
};
const good: HealthReport = {
  node_id: 'box',
  status: 'ok',
  latency_ms: 2,
  version: '1.2.3',
  uptime_seconds: 60,
  agents: 1,
  clock_skew_ms: 3,
  disk: { path: '/d', free_bytes: 5 * 1024 ** 3, total_bytes: 10 * 1024 ** 3, starts_allowed: true },
  checks: [
    { name: 'dns', ok: true, ms: 0.5 },
    { name: 'tcp', ok: true, ms: 1 },
  ],
};
const bad: HealthReport = {
  ...good,
  status: 'unreachable',
  latency_ms: null,
  version: null,
  uptime_seconds: null,
  agents: null,
  clock_skew_ms: null,
  disk: null,
  checks: [
    { name: 'dns', ok: true, ms: 0.5 },
    {
      name: 'tcp',
      ok: false,
      ms: 1,
      error: 'failed to connect to remote node',
      hint: 'is a firewall\x1b[2J',
    },
  ],
};

let home: string;
let server: HttpServer | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-nodes-'));
  server = null;
});
afterEach(async () => {
  await server?.drain();
  rmSync(home, { recursive: true, force: true });
});

async function open(handlers: Parameters<typeof openFakeHttp>[0]): Promise<Record<string, string>> {
  server = await openFakeHttp(handlers);
  return { SVC_URL: server.url, SVC_TOKEN: ROOT_TOKEN };
}

describe('nodes', () => {
  test('ls prints all nodes, and get prints one', async () => {
    const env = await open({ listAgentNodes: () => ({ items: [box] }), getAgentNode: () => box });
    const { stdout } = await run(['nodes', 'ls'], { home, env });
    expect(stdout).toBe(`box\tThe box\tconnected\t1.2.3\t4\t${time}\n`);
    const table = await run(['nodes', 'ls'], { home, env: { ...env, NO_COLOR: '1' }, tty: true });
    expect(table.stdout.split('\n')[0]!.trim()).toMatch(/^ID +NAME +STATUS +VERSION +AGENTS +LAST SEEN$/);
    expect(JSON.parse((await run(['nodes', 'get', 'box', '--json'], { home, env })).stdout)).toEqual(box);
  });

  test('are available to root only', async () => {
    const env = { ...(await open({})), SVC_TOKEN: USER_TOKEN };
    expect(await run(['nodes', 'ls'], { home, env })).toMatchObject({
      code: 4,
      stderr: 'svc: root required\n',
    });
  });

  test('register sends its flags and waits until the node is connected', async () => {
    let body: unknown;
    let looks = 0;
    const connecting = { ...box, status: 'connecting' as const };
    const env = await open({
      registerAgentNode: (call) => {
        body = call.body;
        return { location: '/x', body: connecting };
      },
      getAgentNode: () => (++looks < 2 ? connecting : box),
    });
    const argv = ['nodes', 'register', 'box', '--target', 'https://box:8081', '--tls-server-name', 'inner'];
    const ran = await run([...argv, '--default-worktree-root', '/w', '--json'], { home, env });
    expect(ran.code).toBe(0);
    expect(JSON.parse(ran.stdout).status).toBe('connected');
    expect(body).toEqual({
      id: 'box',
      name: 'box',
      grpc_target: 'https://box:8081',
      tls_server_name: 'inner',
      default_worktree_root: '/w',
    });
    expect(looks).toBe(2);
    const at_once = await run([...argv, '--no-wait', '--json'], { home, env });
    expect(JSON.parse(at_once.stdout).status).toBe('connecting');
  });

  test('register waits while the plane restarts', async () => {
    let looks = 0;
    const env = await open({
      registerAgentNode: () => ({ location: '/x', body: { ...box, status: 'connecting' } }),
      getAgentNode: () => {
        if (++looks === 1) throw problems.draining();
        return box;
      },
    });
    const argv = ['nodes', 'register', 'box', '--target', 'https://box:8081', '--json'];
    expect(await run(argv, { home, env })).toMatchObject({ code: 0, stderr: '' });
    expect(looks).toBe(2);
  });

  test('register shows the failing check on a timeout', async () => {
    const connecting = { ...box, status: 'connecting' as const };
    const env = await open({
      registerAgentNode: () => ({ location: '/x', body: connecting }),
      getAgentNode: () => connecting,
      getAgentNodeHealth: () => bad,
    });
    const argv = ['nodes', 'register', 'box', '--target', 'https://box:8081', '--timeout', '30ms'];
    const { code, stdout, stderr } = await run(argv, { home, env });
    expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
    expect(stderr).toContain('✗ tcp            failed to connect to remote node');
    expect(stderr).toContain('node box is registered, but not connected yet');
  });

  test('register prints why it was rejected', async () => {
    const env = await open({
      registerAgentNode: () => {
        throw problems.nodeExists();
      },
    });
    const ran = await run(['nodes', 'register', 'box', '--target', 'https://box:8081'], { home, env });
    expect(ran).toMatchObject({ code: 1, stderr: 'svc: agent node id or name already exists\n' });
    expect((await run(['nodes', 'register', 'box'], { home, env })).code).toBe(2);
  });

  test('set sends only the specified fields; an empty value clears a field', async () => {
    let body: unknown;
    const env = await open({
      updateAgentNode: (call) => {
        body = call.body;
        return box;
      },
    });
    const argv = ['nodes', 'set', 'box', '--name', 'n', '--tls-server-name', ''];
    expect((await run(argv, { home, env })).code).toBe(0);
    expect(body).toEqual({ name: 'n', tls_server_name: null });
    expect((await run(['nodes', 'set', 'box'], { home, env })).code).toBe(2);
  });

  test('test prints each check, and fails if one fails', async () => {
    let report = good;
    const env = await open({ getAgentNodeHealth: () => report });
    const fine = await run(['nodes', 'test', 'box'], { home, env });
    expect(fine.code).toBe(0);
    expect(fine.stdout.split('\n')).toEqual([
      '✓ dns            0.5 ms',
      '✓ tcp            1 ms',
      '✓ clock          3 ms off',
      '✓ disk           5.0 GiB free at /d',
      'ok (svc 1.2.3, running agents: 1)',
      '',
    ]);
    report = bad;
    const { code, stdout, stderr } = await run(['nodes', 'test', 'box'], { home, env });
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'svc: node box is unreachable\n' });
    expect(stdout).toContain(
      '✗ tcp            failed to connect to remote node\n    is a firewall\\x1b[2J\n',
    );
    const json = await run(['nodes', 'test', 'box', '--json'], { home, env });
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toEqual(bad);
  });

  test('rm deletes a node, or prints the reason for a failure', async () => {
    const env = await open({
      deleteAgentNode: ({ params }) => {
        if (params.node_id !== 'box') throw problems.nodeHasAgents();
        return undefined;
      },
    });
    expect(await run(['nodes', 'rm', 'box'], { home, env })).toMatchObject({
      code: 0,
      stderr: 'deleted box\n',
    });
    expect(await run(['nodes', 'rm', 'full'], { home, env })).toMatchObject({
      code: 1,
      stderr: 'svc: agent node has active agents\n',
    });
  });

  test('token prints the token and the TOML; --rotate creates a new one', async () => {
    const env = await open({
      getBootstrapToken: () => ({ token: 'old', toml: '[server]\n', expires_at: time }),
      rotateBootstrapToken: () => ({ token: 'new', toml: '[server]\n', expires_at: null }),
    });
    const shown = await run(['nodes', 'token'], { home, env });
    expect(shown.stdout).toBe('old\n\n[server]\n');
    expect(shown.stderr).toContain(`for one node, until ${time}`);
    expect((await run(['nodes', 'token', '--rotate', '--toml'], { home, env })).stdout).toBe('[server]\n');
    const json = await run(['nodes', 'token', '--rotate', '--json'], { home, env });
    expect(JSON.parse(json.stdout).token).toBe('new');
  });

  test('repositories lists those of a node, with what could not be found out', async () => {
    const asked: string[] = [];
    let found: RepositoryList = {
      roots: ['/code'],
      repositories: [
        { path: '/code/shop', name: 'shop', branch: 'main', dirty: true, last_used_at: time },
        { path: '/code/\u202egpj', name: '\u202egpj', branch: null, dirty: null, last_used_at: null },
      ],
      truncated: true,
    };
    const env = await open({
      listRepositories: ({ params }) => {
        asked.push(params.node_id);
        return found;
      },
    });
    const listed = await run(['nodes', 'repositories'], { home, env });
    expect(listed.code).toBe(0);
    expect(listed.stdout).toBe(
      `shop\tmain\tuncommitted\t${time}\t/code/shop\n⟦U+202E⟧gpj\t(detached)\tunknown\t-\t/code/⟦U+202E⟧gpj\n`,
    );
    expect(listed.stderr).toBe('there may be more repositories; the search stopped at a limit\n');
    const json = await run(['nodes', 'repos', 'box', '--json'], { home, env });
    expect(JSON.parse(json.stdout)).toEqual(found);
    found = { roots: ['/code'], repositories: [], truncated: false };
    expect((await run(['nodes', 'repos'], { home, env })).stderr).toBe('no repositories in /code\n');
    found = { ...found, roots: [] };
    expect((await run(['nodes', 'repos'], { home, env })).stderr).toContain('no folder is allowed');
    expect(asked).toEqual(['main', 'box', 'main', 'main']);
  });

  test('agents create names the repositories below a folder that is not a repository', async () => {
    const paths = ['/code/a', '/code/b', '/codes/c'];
    const env = await open({
      createAgent: () => {
        throw new Problem('invalid', 'git_refused', 'fatal: not a git repository', { refused_path: '/code' });
      },
      listRepositories: () => ({
        roots: ['/'],
        repositories: paths.map((path) => ({
          path,
          name: path,
          branch: null,
          dirty: null,
          last_used_at: null,
        })),
        truncated: false,
      }),
    });
    const create = (repo: string) =>
      run(['agents', 'create', 'r', '--repo', repo, '-c', 'true'], { home, env });
    expect(await create('/code')).toMatchObject({
      code: 1,
      stderr: 'svc: /code is not a git repository\nsvc: choose a repository below it: /code/a, /code/b\n',
    });
    expect((await create('/empty')).stderr).toBe(
      'svc: /empty is not a git repository\nsvc: choose one of those that svc nodes repositories lists\n',
    );
  });

  test('have completion for their ids', async () => {
    const env = await open({ listAgentNodes: () => ({ items: [box, { ...box, id: 'other' }] }) });
    const complete = async (words: string[]) =>
      (await run(['__complete', '--', ...words], { home, env })).stdout.split('\n').filter(Boolean);
    expect(await complete(['nodes', 'test', ''])).toEqual(['box', 'other']);
    expect(await complete(['nodes', 'rm', 'o'])).toEqual(['other']);
    expect(await complete(['nodes', 're'])).toEqual(['register', 'repositories']);
    expect(await complete(['init', '--no'])).toEqual(['--node']);
  });
});

describe('init --node', () => {
  const token = 'a-bootstrap-token-of-some-length';

  test("writes a node's configuration for this user, once", async () => {
    const argv = ['init', '--node', '--id', 'box', '--token', '-', '--listen', '10.0.0.1:9000'];
    const ran = await run([...argv, '--config', 'n.toml'], { home, input: `${token}\nmore\n` });
    expect(ran.code).toBe(0);
    expect(ran.stderr).toContain('svc nodes register box --target https://<this host>:9000');
    expect(ran.stderr + ran.stdout).not.toContain(token);
    const path = join(home, 'n.toml');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(parse(readFileSync(path, 'utf8'))).toEqual({
      server: { role: 'node', node_id: 'box' },
      worktree: { default_root: '~/svc-worktrees' },
      internal_grpc: { enabled: true, listen: '10.0.0.1:9000', bootstrap: { token } },
    });
    const again = await run([...argv, '--config', 'n.toml'], { home, input: token });
    expect(again).toMatchObject({ code: 1, stderr: `svc: ${path} already exists; it was not changed\n` });
  });

  test('uses the name of the machine as the id, and asks a terminal for the token', async () => {
    expect((await run(['init', '--node', '--token', token], { home })).code).toBe(0);
    const text = readFileSync(join(home, 'config.toml'), 'utf8');
    expect(parse(text)).toMatchObject({
      server: { node_id: hostname() },
      internal_grpc: { listen: '0.0.0.0:8081' },
    });
    const asked = await run(['init', '--node', '--id', 'b', '--config', 'b.toml'], {
      home,
      typed: [token],
      tty: true,
    });
    expect(asked.code).toBe(0);
    expect(readFileSync(join(home, 'b.toml'), 'utf8')).toContain(token);
  });

  test('rejects values with which no node could start, and writes nothing', async () => {
    for (const argv of [
      ['--node', '--id', 'main', '--token', token],
      ['--node', '--id', 'a b', '--token', token],
      ['--node', '--id', 'box', '--token', 'short'],
      ['--node', '--id', 'box', '--token', `${token}"`, '--listen', 'nowhere'],
      ['--node', '--id', 'box'],
      ['--id', 'box'],
      ['--token', token],
    ]) {
      const { code, stdout } = await run(['init', ...argv], { home });
      expect({ argv, code, stdout }).toEqual({ argv, code: 2, stdout: '' });
    }
    expect(() => statSync(join(home, 'config.toml'))).toThrow();
  });
});
