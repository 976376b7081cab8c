import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestNode } from '../testing/local-node.ts';
import { directExec, type Exec } from './exec.ts';
import { Sandbox } from './sandbox.ts';

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-sandbox-')));
  for (const name of ['data/worktrees/mine', 'data/steps/ses_a', 'data/actor/ses_a.own', 'safe', 'certs']) {
    await mkdir(join(root, name), { recursive: true });
  }
});
afterEach(() => rm(root, { recursive: true }));

const works: Exec = { run: async () => ({ ...nothing, code: 0 }) };
const nothing = {
  signal: null,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  truncated: false,
  timed_out: false,
};

function make(more: Partial<ConstructorParameters<typeof Sandbox>[0]> = {}): Sandbox {
  return new Sandbox({
    ...{ exec: works, bwrap: '/usr/bin/bwrap', data_dir: join(root, 'data'), run_as: null },
    hidden: [join(root, 'certs'), join(root, 'missing')],
    writable: () => ['/', join(root, 'safe')],
    worktree_root: () => join(root, 'data', 'worktrees'),
    repo_roots: () => [],
    ...more,
  });
}

test('what lies deeper counts more: own folders within hidden ones, hidden ones within writable ones', async () => {
  const own = {
    workdir: join(root, 'data/worktrees/mine'),
    read: [join(root, 'data/actor/ses_a.own')],
    write: [join(root, 'data/steps/ses_a')],
  };
  const argv = await make().argv(own);
  const at = (...words: string[]) => {
    const found = argv.findIndex((_, n) => words.every((word, i) => argv[n + i] === word));
    expect(found, words.join(' ')).toBeGreaterThan(0);
    return found;
  };
  const bind = (kind: string, path: string) => at(kind, path, path);
  const order = [
    bind('--ro-bind', '/'),
    bind('--bind', '/'),
    at('--dev', '/dev'),
    at('--tmpfs', '/tmp'),
    bind('--bind', join(root, 'safe')),
    at('--tmpfs', join(root, 'data', 'worktrees')),
    bind('--bind', own.workdir),
  ];
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(at('--tmpfs', join(root, 'data'))).toBeLessThan(bind('--ro-bind', own.read[0]!));
  expect(at('--tmpfs', join(root, 'certs'))).toBeGreaterThan(0);
  expect(bind('--bind', own.write[0]!)).toBeGreaterThan(0);
  expect(argv.join(' ')).not.toContain('missing');
});

test('no agent is started where no sandbox can be made, and why is said', async () => {
  const refused: [Partial<ConstructorParameters<typeof Sandbox>[0]>, string][] = [
    [{ bwrap: null }, 'bwrap was not found: install bubblewrap'],
    [{ bwrap: '/bin/false', exec: directExec }, 'bwrap cannot make namespaces here: exit code 1'],
  ];
  const folders = { resolve: async (path: string) => path } as never;
  for (const [more, why] of refused) {
    const sandbox = make(more);
    expect(await sandbox.problem()).toBe(why);
    const node = await openTestNode(join(root, 'data'), { sandbox, folders });
    const launch = {
      ...{ session_id: 'ses_a', plane_id: 'p', agent_id: 'a', agent_name: 'a', owner_id: 'o', env: {} },
      ...{ workdir: join(root, 'safe'), argv: ['true'], stdin: false, on_exit: 'kill' as const },
    };
    await expect(node.start(launch)).rejects.toMatchObject({
      code: 'sandbox_unavailable',
      message: `agents.sandbox cannot be kept: ${why}`,
    });
    expect((await node.health()).sessions_live).toBe(0);
    await node.close();
  }
});
