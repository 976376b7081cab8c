import { execFileSync, spawn } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hasProc } from '../../base/proc.ts';
import type { Folders, Worktree } from '../../core/node.ts';
import { git, makeRepository, type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';
import { removeSpecialFiles } from './special-files.ts';

let folder: TemporaryFolder;
let repo: string;
let folders: Folders;
/** The most that `git cat-file` gets, which the FIFO of a test blocks. */
let cat_file_ms: number;

beforeEach(() => {
  folder = temporaryFolder();
  cat_file_ms = Number.POSITIVE_INFINITY;
  repo = makeRepository(join(folder.path, 'safe/repo'), { 'a.txt': 'one\n' });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => join(folder.path, 'data/worktrees'),
    repo_roots: () => [],
    exec: {
      run: (argv, options) => {
        const timeout_ms = argv.includes('cat-file') ? cat_file_ms : Number.POSITIVE_INFINITY;
        return directExec.run(argv, { ...options, timeout_ms: Math.min(options.timeout_ms, timeout_ms) });
      },
    },
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const create = (agent_id: string): Promise<Worktree> =>
  folders.createWorktree({ agent_id, name: 'x', workdir: null, repo, ref: null });
const remove = (worktree: Worktree) => folders.removeWorktree(worktree, { force: false });
const inRepo = (name: string) => join(repo, '.git', name);

function fifo(name: string): void {
  mkdirSync(dirname(inRepo(name)), { recursive: true });
  execFileSync('mkfifo', [inRepo(name)]);
}

/** Git reads each of these files. */
const READ = [
  'refs/heads/waits',
  'refs/tags/deep/er/waits',
  'objects/info/alternates',
  'objects/info/commit-graphs/commit-graph-chain',
  'objects/pack/multi-pack-index',
  'worktrees/x-agt_other/HEAD',
  'worktrees/x-agt_other/rebase-merge/update-refs',
  'worktrees/x-agt_other/rebase-apply/head-name',
];

test('FIFOs in a repository delay no work on worktrees', async () => {
  const placeFifos = () => {
    for (const name of READ) {
      rmSync(inRepo(name), { force: true });
      fifo(name);
    }
  };
  const left = () => READ.filter((name) => existsSync(inRepo(name)));
  await create('agt_other');
  placeFifos();
  const made = await create('agt_one');
  expect(left()).toEqual([]);
  placeFifos();
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(left()).toEqual([]);
});

test('if a FIFO blocks a read of the changes, the next read succeeds', { timeout: 60_000 }, async () => {
  const made = await create('agt_one');
  fifo('objects/info/alternates');
  const look = () => folders.changes({ workdir: made.workdir, base: made.base });
  cat_file_ms = 500;
  await expect(look()).rejects.toMatchObject({ code: 'git_timeout' });
  cat_file_ms = Number.POSITIVE_INFINITY;
  expect(await look()).toMatchObject({ git: true, files: [] });
});

test.runIf(hasProc)('a folder that turns into a link does not lead to other files', async () => {
  const [one, other] = [inRepo('refs/heads/x'), inRepo('refs/heads/y')];
  mkdirSync(one);
  symlinkSync('../../worktrees/theirs', other);
  mkdirSync(inRepo('worktrees/theirs'), { recursive: true });
  writeFileSync(inRepo('worktrees/theirs/index'), '');
  truncateSync(inRepo('worktrees/theirs/index'), 4 * 1024 ** 2);
  const exchange = process.arch === 'arm64' ? 276 : 316;
  const script = `my ($one, $other) = @ARGV; 1 while syscall(${exchange}, -100, $one, -100, $other, 2) == 0`;
  const racer = spawn('perl', ['-e', script, one, other], { stdio: 'ignore' });
  try {
    for (let n = 0; n < 150; n++) await removeSpecialFiles(join(repo, '.git'));
    expect(racer.exitCode).toBeNull();
  } finally {
    racer.kill('SIGKILL');
  }
  expect(existsSync(inRepo('worktrees/theirs/index'))).toBe(true);
});

test('removes links to devices and long references, and keeps what git can read', async () => {
  const long = inRepo('refs/heads/long');
  writeFileSync(long, '');
  truncateSync(long, 64 * 1024 ** 3);
  symlinkSync('/dev/zero', inRepo('refs/heads/endless'));
  symlinkSync('refs/heads/main', inRepo('refs/heads/alias'));
  symlinkSync('main', inRepo('refs/heads/other'));
  const socket = createServer().listen(inRepo('fsmonitor--daemon.ipc'));
  try {
    await removeSpecialFiles(join(repo, '.git'));
  } finally {
    expect(lstatSync(inRepo('fsmonitor--daemon.ipc')).isSocket()).toBe(true);
    socket.close();
  }
  expect(git(repo, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/main\nrefs/heads/other');
  expect(lstatSync(inRepo('refs/heads/alias')).isSymbolicLink()).toBe(true);
});
