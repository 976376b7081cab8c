import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestNode } from '../../testing/local-node.ts';
import { sandboxMissing } from '../../testing/sandbox.ts';
import { limits } from '../limits.ts';
import { directExec, type Exec } from '../processes/exec.ts';
import { type FolderView, Sandbox } from './sandbox.ts';
import { seccompFilter } from './seccomp-filter.ts';

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
    ...{
      exec: works,
      bwrap: '/usr/bin/bwrap',
      unshare: '/usr/bin/unshare',
      data_dir: join(root, 'data'),
      run_as: null,
    },
    env: {},
    hidden: [join(root, 'certs'), join(root, 'missing')],
    readable: [],
    writable: () => [join(root, 'safe')],
    worktree_roots: () => [join(root, 'data', 'worktrees')],
    repo_roots: () => [],
    ...more,
  });
}

const agent = () => ({
  ...{ workdir: join(root, 'data/worktrees/mine'), preset: null, owner_id: 'usr_a', team_id: null },
  read: [join(root, 'data/actor/ses_a.own')],
  write: [join(root, 'data/steps/ses_a')],
});

/** The index at which these arguments occur consecutively in an argv; fails if they do not. */
function position(argv: string[], ...words: string[]): number {
  const found = argv.findIndex((_, n) => words.every((word, i) => argv[n + i] === word));
  expect(found, words.join(' ')).toBeGreaterThan(0);
  return found;
}

test('mounts deeper paths later, so that they show inside hidden and writable folders', async () => {
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

test('hides homes except for what the operator opens and the state of the preset', async () => {
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
  // Another user's agents have a separate directory at the same path.
  const state = join(root, 'data/state/usr_a/claude/.claude');
  position(argv, '--bind', state, join(home, '.claude'));
});

test('shares the state of a preset if the operator makes it writable', async () => {
  const home = join(root, 'home');
  const claude = join(home, '.claude');
  await mkdir(claude, { recursive: true });
  const sandbox = make({ env: { HOME: home }, writable: () => [claude] });
  const { argv, release } = await sandbox.agent({ ...agent(), preset: 'claude' });
  await release();
  position(argv, '--bind', claude, claude);
  expect(argv.join(' ')).not.toContain('data/state/usr_a');
});

test('identifies every folder that agents could replace by device and inode', async () => {
  const { places, ids, release } = await make().agent(agent());
  const { dev, ino } = await stat(agent().workdir, { bigint: true });
  expect([places, ids]).toEqual([[agent().workdir], [`${dev}:${ino}`]]);
  await release();
  await symlink(join(root, 'certs'), join(root, 'safe/link'));
  await expect(make().agent({ ...agent(), workdir: join(root, 'safe/link') })).rejects.toThrow('ENOTDIR');
});

test('rejects a path with a line break, which the check inside would read as two paths', async () => {
  const workdir = join(root, 'safe/a\nb');
  await mkdir(workdir);
  await expect(make().agent({ ...agent(), workdir })).rejects.toMatchObject({ code: 'workdir_not_safe' });
});

test('accepts a worktree record only in a repository that agents cannot have forged', async () => {
  const repo = join(root, 'repos/r/.git');
  const workdir = join(root, 'trees/mine');
  await mkdir(workdir, { recursive: true });
  const sandbox = make({ repo_roots: () => [root], worktree_roots: () => [join(root, 'trees')] });
  await mkdir(join(repo, 'refs'), { recursive: true });
  await writeFile(join(repo, 'HEAD'), 'ref: refs/heads/main\n');
  const opened = async (common_dir: string) => {
    const record = join(common_dir, 'worktrees/mine');
    for (const name of [record, join(common_dir, 'objects')]) await mkdir(name, { recursive: true });
    await writeFile(join(record, 'gitdir'), `${workdir}/.git\n`);
    await writeFile(join(workdir, '.git'), `gitdir: ${record}\n`);
    const { argv, release } = await sandbox.agent({ ...agent(), workdir });
    await release();
    return argv.includes(join(common_dir, 'objects'));
  };
  expect(await opened(repo)).toBe(true);
  const made_up = [join(repo, 'objects/x'), join(repo, 'worktrees/mine/x'), join(workdir, 'x')];
  for (const common_dir of made_up) expect(await opened(common_dir)).toBe(false);
});

test('gives a read-only program no writable folder and no network', async () => {
  const { argv, release } = await make().folders({ kind: 'read', workdir: join(root, 'safe') });
  await release();
  expect(argv).toContain('--unshare-net');
  expect(argv).not.toContain('--bind');
});

test('shows repositories only where agents cannot write', async () => {
  await mkdir(join(root, 'repos'));
  const [safe, repos] = [join(root, 'safe'), join(root, 'repos')];
  const sandbox = make({ repo_roots: () => [repos] });
  const argvOf = async (view: FolderView) => {
    const { argv, release } = await sandbox.folders(view);
    await release();
    return argv;
  };
  const argv = await argvOf({ kind: 'repositories', path: join(repos, 'r') });
  position(argv, '--ro-bind', repos, repos);
  position(argv, '--tmpfs', safe);
  expect(argv).not.toContain('--bind');
  for (const view of [
    { kind: 'programs' },
    ...(['read', 'checkout'] as const).map((kind) => ({ kind, workdir: safe })),
    { kind: 'records', common_dir: null, workdir: null },
  ] satisfies FolderView[]) {
    expect(await argvOf(view), view.kind).not.toContain(repos);
  }
});

test('rejects agents with the reason if a sandbox is not possible', async () => {
  const refused: [Partial<ConstructorParameters<typeof Sandbox>[0]>, string][] = [
    [{ bwrap: null }, 'bwrap was not found: install bubblewrap'],
    [{ bwrap: '/bin/false', exec: directExec }, 'bwrap cannot create namespaces here: exit code 1'],
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
      message: `agents.sandbox does not work: ${why}`,
    });
    expect((await node.health()).sessions_live).toBe(0);
    await node.close();
  }
});

test('moves a folder in place of a sign-in file aside, so that the agent starts', async () => {
  const home = join(root, 'home');
  await mkdir(join(home, '.claude'), { recursive: true });
  await writeFile(join(home, '.claude/.credentials.json'), 'sign-in');
  const state = join(root, 'data/state/usr_a/claude/.claude');
  await mkdir(join(state, '.credentials.json/x'), { recursive: true });
  const { release } = await make({ env: { HOME: home } }).agent({ ...agent(), preset: 'claude' });
  await release();
  expect(await readFile(join(state, '.credentials.json'), 'utf8')).toBe('sign-in');
});

test('mounts nothing in a folder that agents write to, however its path is written', async () => {
  const workdir = join(root, 'safe/mine');
  const common_dir = join(root, 'safe/evil');
  const record = join(common_dir, 'worktrees/mine');
  for (const name of [workdir, record, join(common_dir, 'objects')]) await mkdir(name, { recursive: true });
  for (const name of ['HEAD', 'config']) await writeFile(join(common_dir, name), '');
  await writeFile(join(record, 'gitdir'), `${workdir}/.git\n`);
  await writeFile(join(workdir, '.git'), `gitdir: ${record}\n`);
  await symlink(join(root, 'safe'), join(root, 'link'));
  for (const safe of [join(root, 'safe'), join(root, 'safe/'), `${root}/safe//`, join(root, 'link')]) {
    const { argv, release } = await make({ writable: () => [safe] }).agent({ ...agent(), workdir });
    await release();
    expect(
      argv.filter((word) => word.startsWith(common_dir)),
      safe,
    ).toEqual([]);
  }
});

test('shows no folder of PATH that agents can redirect', async () => {
  const home = join(root, 'home');
  await mkdir(join(home, 'tools/node/versions/v1'), { recursive: true });
  await mkdir(join(home, 'secret'));
  const env = { HOME: home, PATH: `/usr/bin:${home}/tools/node/versions/v1/bin` };
  await symlink(join(home, 'secret'), join(home, 'tools/node/versions/v1/bin'));
  const { argv, release } = await make({ env, writable: () => [join(home, 'tools')] }).agent(agent());
  await release();
  expect(argv).not.toContain(join(home, 'secret'));
});

test('hides the state of other data directories, without following links', async () => {
  for (const name of ['svc-state-earlier/65534', 'target'])
    await mkdir(join(root, name), { recursive: true });
  await symlink(join(root, 'target'), join(root, 'svc-state-link'));
  await writeFile(join(root, 'svc-state-file'), '');
  const { argv, release } = await make().agent(agent());
  await release();
  position(argv, '--tmpfs', join(root, 'svc-state-earlier'));
  for (const name of ['target', 'svc-state-link', 'svc-state-file'])
    expect(argv).not.toContain(join(root, name));
});

test('shows no repositories in place of worktrees', async () => {
  for (const name of ['trees', 'repos']) await mkdir(join(root, name));
  const roots = {
    worktree_roots: () => [join(root, 'trees')],
    repo_roots: () => ['repos', 'trees'].map((n) => join(root, n)),
  };
  const { argv, release } = await make(roots).folders({ kind: 'repositories', path: join(root, 'repos/r') });
  await release();
  position(argv, '--ro-bind', join(root, 'repos'), join(root, 'repos'));
  position(argv, '--tmpfs', join(root, 'trees'));
  expect(argv.filter((word) => word === join(root, 'trees'))).toHaveLength(1);
});

test.skipIf(sandboxMissing() !== null)('limits the user namespaces that exist in a sandbox', async () => {
  const sandbox = make({ exec: directExec });
  expect(await sandbox.problem()).toBeNull();
  expect(sandbox.gaps.join()).not.toContain('user namespaces of its user');
  const { argv, release } = await sandbox.folders({ kind: 'programs' });
  const most = limits.sandbox_user_namespaces_max;
  const script = `for i in $(seq ${most + 10}); do unshare --user sh -c 'echo made; sleep 2' & done; wait`;
  try {
    const [program, ...words] = [...argv, '/bin/sh', '-c', script];
    const { stdout } = await directExec.run([program!, ...words], {
      ...{ cwd: '/', stdin: seccompFilter(), env: { PATH: '/usr/bin:/bin' } },
      ...{ output_bytes_max: 4_096, timeout_ms: 20_000 },
    });
    const made = stdout.toString().split('made').length - 1;
    expect(made).toBeGreaterThanOrEqual(most - 2);
    expect(made).toBeLessThan(most);
  } finally {
    await release();
  }
});

test('works where the number of user namespaces cannot be limited, and says so', async () => {
  const refuses = (words: readonly string[]) => words.includes('--keep-caps');
  const exec: Exec = { run: async (argv) => ({ ...nothing, code: refuses(argv) ? 1 : 0 }) };
  const sandbox = make({ exec });
  expect(await sandbox.problem()).toBeNull();
  expect(sandbox.gaps.join()).toContain('user namespaces of its user');
  const { argv, release } = await sandbox.agent(agent());
  await release();
  expect(argv.slice(0, argv.indexOf('/usr/bin/bwrap'))).not.toContain('--keep-caps');
  position(argv, '--unshare-pid');
});
