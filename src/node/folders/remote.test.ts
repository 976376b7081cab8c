import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Folders, Worktree } from '../../core/node.ts';
import {
  commit,
  git,
  makeRepository,
  makeTrap,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';
import { answerSchemas } from './worker-answers.ts';

let folder: TemporaryFolder;
let repo: string;
let bare: string;
let folders: Folders;
let made: Worktree;
/** The arguments of every process. */
let started: (readonly string[])[];

beforeEach(async () => {
  folder = temporaryFolder();
  const safe = join(folder.path, 'safe');
  repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
  bare = join(folder.path, 'bare.git');
  mkdirSync(bare);
  git(bare, 'init', '--quiet', '--bare');
  started = [];
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => join(folder.path, 'data/worktrees'),
    repo_roots: () => [],
    exec: {
      run: (argv, options) => {
        started.push(argv);
        return directExec.run(argv, options);
      },
    },
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
  made = await folders.createWorktree({ agent_id: 'agt_one', name: 'fix', workdir: null, repo, ref: null });
});
afterEach(() => folder.remove());

/** What the node answers; an answer of a worker must also have the format that the service accepts. */
async function remote(request: { workdir: string; base: string | null } = made) {
  const changes = await folders.changes(request);
  expect(answerSchemas.changes.parse(changes)).toEqual(changes);
  return changes.remote;
}
const addRemote = (name: string, url: string) => git(repo, 'remote', 'add', name, url);
const work = (text: string) => commit(made.workdir, { 'a.txt': text }, text);
const push = (...args: string[]) => git(made.workdir, 'push', '--quiet', ...args);

test('a branch of a repository without remotes has none', async () => {
  expect(await remote()).toBeNull();
});

test('a branch is pushed once the remote has its latest commit', async () => {
  addRemote('origin', bare);
  const branch = made.branch!;
  work('two\n');
  expect(await remote()).toEqual({ name: 'origin', url: null, pushed: false });
  push('-u', 'origin', branch);
  expect(await remote()).toMatchObject({ pushed: true });
  work('three\n');
  expect(await remote()).toMatchObject({ pushed: false });
  // Somebody else added a commit on the remote.
  push('origin', branch);
  const there = join(folder.path, 'clone');
  git(folder.path, 'clone', '--quiet', '--branch', branch, bare, there);
  commit(there, { 'b.txt': 'more\n' }, 'more');
  git(there, 'push', '--quiet');
  git(repo, 'fetch', '--quiet');
  expect(await remote()).toMatchObject({ pushed: true });
  // The remote has another history.
  git(there, 'reset', '--quiet', '--hard', 'HEAD~2');
  commit(there, { 'b.txt': 'other\n' }, 'other');
  git(there, 'push', '--quiet', '--force');
  git(repo, 'fetch', '--quiet');
  expect(await remote()).toMatchObject({ pushed: false });
});

test('only an agent with its own worktree has a remote', async () => {
  addRemote('origin', 'https://github.com/shop/cart');
  expect(await remote({ workdir: repo, base: null })).toBeNull();
  expect(await remote()).not.toBeNull();
  git(made.workdir, 'checkout', '--quiet', '--detach');
  expect(await remote()).toBeNull();
});

test('of several remotes, git’s own choice comes first, then origin', async () => {
  addRemote('fork', 'git@github.com:ann/cart.git');
  expect(await remote()).toMatchObject({ name: 'fork', url: 'ssh://github.com/ann/cart.git' });
  addRemote('other', 'https://github.com/other/cart');
  expect(await remote()).toBeNull();
  addRemote('origin', 'https://github.com/shop/cart');
  expect(await remote()).toMatchObject({ name: 'origin', url: 'https://github.com/shop/cart' });
  git(repo, 'config', `branch.${made.branch}.remote`, 'fork');
  expect(await remote()).toMatchObject({ name: 'fork' });
  git(repo, 'config', `branch.${made.branch}.pushRemote`, 'other');
  expect(await remote()).toMatchObject({ name: 'other' });
  // A remote that does not exist, and a branch of the repository itself.
  for (const none of ['gone', '.', 'https://evil.example/x']) {
    git(repo, 'config', `branch.${made.branch}.pushRemote`, none);
    expect(await remote()).toMatchObject({ name: 'origin' });
  }
});

test('the URL is the one that git pushes to', async () => {
  addRemote('origin', 'https://github.com/shop/cart');
  git(repo, 'config', 'remote.origin.pushurl', 'git@github.com:ann/cart.git');
  expect(await remote()).toMatchObject({ url: 'ssh://github.com/ann/cart.git' });
  git(repo, 'config', 'url.ssh://git@gitlab.com/.insteadOf', 'git@github.com:');
  expect(await remote()).toMatchObject({ url: 'ssh://gitlab.com/ann/cart.git' });
});

test('a request that needs no remote starts none of the git processes that find it', async () => {
  addRemote('origin', bare);
  push('origin', `${made.branch}:elsewhere`, `${made.branch}`);
  work('two\n');
  const ask = async (skip_remote: boolean) => {
    started = [];
    const changes = await folders.changes({ ...made, skip_remote });
    return { changes, argvs: started.map((argv) => argv.slice(argv.indexOf('-C') + 2).join(' ')) };
  };
  const full = await ask(false);
  const short = await ask(true);
  expect(full.changes.remote).toMatchObject({ name: 'origin', pushed: false });
  expect(short.changes).toEqual({ ...full.changes, remote: null });
  const saved = full.argvs.filter((argv) => !short.argvs.includes(argv));
  expect(full.argvs).toHaveLength(short.argvs.length + saved.length);
  expect(saved.map((argv) => argv.split(' ')[0]).sort()).toEqual([
    ...['for-each-ref', 'merge-base', 'remote', 'remote', 'rev-parse'],
  ]);
  // They do not share a result while both are in progress.
  const [one, other] = await Promise.all([
    folders.changes({ ...made, skip_remote: true }),
    folders.changes(made),
  ]);
  expect([one.remote, other.remote?.name]).toEqual([null, 'origin']);
});

test('credentials of a URL stay in the repository', async () => {
  addRemote('origin', 'https://ann:s3cret@github.com/shop/cart?token=s3cret');
  const answer = await folders.changes(made);
  expect(answer.remote).toEqual({ name: 'origin', url: 'https://github.com/shop/cart', pushed: false });
  expect(JSON.stringify(answer)).not.toContain('s3cret');
});

test('a malicious configuration gets no URL, and runs nothing', async () => {
  const canary = join(folder.path, 'canary');
  const program = makeTrap(folder.path, canary);
  git(repo, 'config', 'protocol.ext.allow', 'always');
  git(repo, 'config', 'core.sshCommand', program);
  addRemote('origin', `ext::${program} %S`);
  for (const url of [
    `ext::${program}`,
    'https://github.com/a\tb',
    'https://github.com/\u202ex/y',
    `https://github.com/${'x'.repeat(100_000)}`,
    'first\nevil\thttps://evil.example/x (push)',
  ]) {
    git(repo, 'config', 'remote.origin.url', url);
    expect(await remote(), url.slice(0, 100)).toEqual({ name: 'origin', url: null, pushed: false });
  }
  git(repo, 'remote', 'remove', 'origin');
  git(repo, 'config', 'remote.--receive-pack=x.url', 'https://github.com/shop/cart');
  expect(await remote()).toBeNull();
  expect(existsSync(canary)).toBe(false);
});

test('a tag with the name of the branch does not name another branch', async () => {
  addRemote('origin', bare);
  git(repo, 'tag', made.branch!);
  expect(await remote()).toBeNull();
});
