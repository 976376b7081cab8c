import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Problem } from '../../../core/problem.ts';
import type { HttpServer } from '../../../server/server.ts';
import { agentRecord, time } from '../../../testing/agent-record.ts';
import { run } from '../../../testing/cli.ts';
import { openFakeHttp, ROOT_TOKEN, USER_TOKEN } from '../../../testing/http.ts';

const ME = { id: 'usr_1', username: 'ana', created_at: time, passkeys: [] };

let home: string;
let server: HttpServer | null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-cli-allow-'));
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

test('allow adds a folder to the allowed ones', async () => {
  const bodies: unknown[] = [];
  const env = await open({
    allowFolder: ({ body }) => {
      bodies.push(body);
      return { folders: ['/a', body.path] };
    },
  });
  const allow = (...args: string[]) => run(['config', 'allow', ...args], { home, env });
  expect(await allow('code/shop/')).toMatchObject({ code: 0, stdout: `/a\n${home}/code/shop\n` });
  expect(await allow('--repositories', '/b')).toMatchObject({ code: 0, stdout: '/a\n/b\n' });
  expect(bodies).toEqual([
    { setting: 'safe_paths', path: join(home, 'code/shop') },
    { setting: 'worktree.repo_roots', path: '/b' },
  ]);
});

describe('after a refused path, create', () => {
  const refusal = (allowed_paths: string[]) =>
    new Problem('invalid', 'workdir_not_safe', 'workdir path must be within allowed safe paths', {
      allowed_paths,
      refused_path: '/b',
    });
  let folders: string[];
  /** Creates an agent in `/b`, which is not allowed, at a terminal. */
  async function create(
    answer: string,
    { argv = [] as string[], token = ROOT_TOKEN, allowed = ['/a'] } = {},
  ) {
    folders = [...allowed];
    const env = await open({
      createAgent: () => {
        if (!folders.includes('/b')) throw refusal(allowed);
        return { location: '/x', body: agentRecord({}) };
      },
      getMe: ({ caller }) => ({ ...ME, role: caller.role }),
      allowFolder: ({ body }) => {
        folders.push(body.path);
        return { folders };
      },
    });
    const command = ['agents', 'create', 'n', '-w', '/b', '-c', 'true', ...argv];
    return run(command, { home, env: { ...env, SVC_TOKEN: token }, typed: [answer], tty: true });
  }
  const remedy = [
    'svc: workdir path must be within allowed safe paths',
    'svc: refused: /b',
    'svc: allowed: /a',
    'svc: choose a folder within one of them; a root user can allow others: svc config allow /b',
  ].join('\n');

  test('lets root allow the folder, and continues', async () => {
    const made = await create('y');
    expect(made.code).toBe(0);
    expect(made.stderr).toContain('add /b to safe_paths, for agents of all users? [y/N]: ');
    expect(folders).toEqual(['/a', '/b']);
  });

  test('changes nothing if root does not agree', async () => {
    const { code, stderr } = await create('');
    expect(code).toBe(1);
    expect(stderr).toContain(remedy);
    expect(folders).toEqual(['/a']);
  });

  test('says so if no folder is allowed yet, and how to allow one', async () => {
    const { stderr } = await create('', { allowed: [] });
    expect(stderr).toContain(
      'svc: no folder is allowed yet\nsvc: a root user can allow one: svc config allow /b\n',
    );
    expect(stderr).not.toContain('allowed: ');
  });

  test.each([
    ['other users', { token: USER_TOKEN }],
    ['about a remote node', { argv: ['--node', 'box'] }],
  ])('does not ask %s', async (_, options) => {
    const { code, stderr } = await create('y', options);
    expect([code, stderr.includes('[y/N]'), stderr.includes(remedy)]).toEqual([1, false, true]);
    expect(folders).toEqual(['/a']);
  });
});
