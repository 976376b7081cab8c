import { mkdir, mkdtemp, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
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
    env: {},
    hidden: [join(root, 'certs'), join(root, 'missing')],
    readable: [],
    writable: () => [join(root, 'safe')],
    worktree_root: () => join(root, 'data', 'worktrees'),
    repo_roots: () => [],
    ...more,
  });
}

const agent = () => ({
  ...{ workdir: join(root, 'data/worktrees/mine'), preset: null, owner_id: 'usr_a' },
  read: [join(root, 'data/actor/ses_a.own')],
  write: [join(root, 'data/steps/ses_a')],
});

/** Where in an argv these words follow each other; fails where they do not. */
function position(argv: string[], ...words: string[]): number {
  const found = argv.findIndex((_, n) => words.every((word, i) => argv[n + i] === word));
  expect(found, words.join(' ')).toBeGreaterThan(0);
  return found;
}

test('mounts deeper paths later, so own folders show in hidden ones and hidden ones in writable ones', async () => {
  const own = agent();
  const { argv, release } = await make().agent(own);
  await release();
  const bind = (kind: string, path: string) => position(argv, kind, path, path);
  const order = [
    bind('--ro-bind', '/'),
    position(argv, '--dev', '/dev'),
    position(argv, '--tmpfs', '/tmp'),
    bind('--bind', join(root, 'safe')),
    position(argv, '--tmpfs', join(root, 'data', 'worktrees')),
    bind('--bind', own.workdir),
  ];
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(position(argv, '--tmpfs', join(root, 'data'))).toBeLessThan(bind('--ro-bind', own.read[0]!));
  expect(position(argv, '--tmpfs', join(root, 'certs'))).toBeGreaterThan(0);
  expect(bind('--bind', own.write[0]!)).toBeGreaterThan(0);
  expect(argv.join(' ')).not.toContain('missing');
});

test('hides homes, but for what the operator opens and the state of the preset', async () => {
  const home = join(root, 'home');
  await mkdir(join(home, 'tools/bin'), { recursive: true });
  await mkdir(join(home, 'open'));
  await writeFile(join(home, '.gitconfig'), '');
  const env = { HOME: home, PATH: `/usr/bin:${home}/tools/bin` };
  const sandbox = make({ env, readable: [join(home, 'open')] });
  const { argv, release } = await sandbox.agent({ ...agent(), preset: 'claude' });
  await release();
  expect(position(argv, '--tmpfs', home)).toBeLessThan(
    position(argv, '--ro-bind', join(home, 'open'), join(home, 'open')),
  );
  position(argv, '--ro-bind', join(home, '.gitconfig'), join(home, '.gitconfig'));
  position(argv, '--ro-bind', join(home, 'tools/bin'), join(home, 'tools/bin'));
  // Another user's agents have a directory of their own at the same path.
  const state = join(root, 'data/state/usr_a/claude/.claude');
  position(argv, '--bind', state, join(home, '.claude'));
});

test('names every folder that agents could swap by device and inode', async () => {
  const { places, ids, release } = await make().agent(agent());
  const { dev, ino } = await stat(agent().workdir, { bigint: true });
  expect([places, ids]).toEqual([[agent().workdir], [`${dev}:${ino}`]]);
  await release();
  await symlink(join(root, 'certs'), join(root, 'safe/link'));
  await expect(make().agent({ ...agent(), workdir: join(root, 'safe/link') })).rejects.toThrow('ENOTDIR');
});

test('gives a program that only looks nothing to write to and no network', async () => {
  const { argv, release } = await make().folders({ kind: 'look', workdir: join(root, 'safe') });
  await release();
  expect(argv).toContain('--unshare-net');
  expect(argv).not.toContain('--bind');
});

test('no agent is started where no sandbox can be made, and why is said', async () => {
  const refused: [Partial<ConstructorParameters<typeof Sandbox>[0]>, string][] = [
    [{ bwrap: null }, 'bwrap was not found: install bubblewrap'],
    [{ bwrap: '/bin/false', exec: directExec }, 'bwrap cannot make namespaces here: exit code 1'],
  ];
  const folders = { resolve: async (path: string) => ({ path, below_worktree_root: false }) } as never;
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
