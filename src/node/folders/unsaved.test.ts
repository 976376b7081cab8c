/**
 * A few git processes look for unsaved work. Each answer counts by itself: one that is missing or failed hides no other.
 * See also `worktrees.test.ts`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Folders, Worktree, WorktreeRequest } from '../../core/node.ts';
import {
  commit,
  git,
  makeRepository,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { directExec, type ExecOptions, type ExecResult } from '../processes/exec.ts';
import { openFolders } from './folders.ts';

const ONE_COMMIT = '1 commit on no remote and no other branch';

let folder: TemporaryFolder;
let repo: string;
let folders: Folders;
/** The arguments of each process of git. */
let calls: string[][];
let change: (args: string[], options: ExecOptions) => ExecOptions;
let answer: (args: string[], result: ExecResult) => ExecResult;

beforeEach(() => {
  folder = temporaryFolder();
  calls = [];
  change = (_, options) => options;
  answer = (_, result) => result;
  repo = makeRepository(join(folder.path, 'safe/repo'), { 'a.txt': 'one\n', '.gitignore': 'ignored\n' });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => join(folder.path, 'data/worktrees'),
    repo_roots: () => [],
    exec: {
      run: async (argv, options) => {
        const args = argv.slice(argv.indexOf('git') + 1);
        if (argv.includes('git')) calls.push(args);
        return answer(args, await directExec.run(argv, change(args, options)));
      },
    },
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const create = (changes: Partial<WorktreeRequest> = {}) =>
  folders.createWorktree({ agent_id: 'agt_one', name: 'x', workdir: null, repo, ref: null, ...changes });
const remove = (worktree: Worktree) => folders.removeWorktree(worktree, { force: false });
const branches = () => git(repo, 'branch', '--format=%(refname:short)').split('\n');
const killed = (result: ExecResult): ExecResult => ({
  ...{ ...result, code: null, signal: 'SIGKILL' },
  ...{ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) },
});

async function expectKept(made: Worktree, because: string): Promise<void> {
  expect(await folders.whyKept(made)).toBe(because);
  expect(await remove(made)).toEqual({ removed: false, kept_because: because });
  expect(existsSync(made.workdir)).toBe(true);
}

test('eight git processes create a worktree, and nine remove it', async () => {
  // Git before 2.36 does not know `list -z`, and is asked again.
  const counted = () => calls.filter((args) => !args.includes('list') || args.includes('-z'));
  const made = await create();
  expect(counted(), calls.join('\n')).toHaveLength(8);
  calls = [];
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(counted(), calls.join('\n')).toHaveLength(9);
});

test.each<[what: string, work: (made: Worktree) => Worktree | undefined, because: string]>([
  ['the base', (made) => ({ ...made, base: '1'.repeat(40) }), ONE_COMMIT],
  [
    'the branch',
    ({ workdir, branch }) => {
      git(workdir, 'checkout', '--quiet', '--detach');
      git(workdir, 'branch', '-D', branch!);
      return undefined;
    },
    ONE_COMMIT,
  ],
  [
    'HEAD',
    ({ workdir }) => {
      git(workdir, 'symbolic-ref', 'HEAD', 'refs/heads/none');
      return undefined;
    },
    `uncommitted changes, ${ONE_COMMIT}`,
  ],
  [
    'HEAD and the base',
    (made) => {
      git(made.workdir, 'symbolic-ref', 'HEAD', 'refs/heads/none');
      return { ...made, base: 'f'.repeat(40) };
    },
    `uncommitted changes, ${ONE_COMMIT}`,
  ],
])('unsaved commits are found without %s', async (_, work, because) => {
  const made = await create();
  commit(made.workdir, { new: 'x' }, 'work');
  // The base of the claim comes first, so without it the one of the request counts.
  const claims = join(folder.path, 'data/worktree-claims');
  for (const name of readdirSync(claims)) {
    const claim = JSON.parse(readFileSync(join(claims, name), 'utf8'));
    writeFileSync(join(claims, name), JSON.stringify({ ...claim, base: null }));
  }
  await expectKept(work(made) ?? made, because);
});

test('a worktree without any commit of its own is removed although its branch is gone', async () => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '--detach');
  git(made.workdir, 'branch', '-D', made.branch!);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
});

test('files and refs that are named like commits make no difference', async () => {
  const made = await create();
  const branch = `refs/heads/${made.branch}`;
  commit(made.workdir, { HEAD: 'x', [branch]: 'x', '--output=x': 'x' }, 'work');
  for (const name of ['HEAD', branch]) git(repo, 'update-ref', `refs/tags/${name}`, 'main');
  await expectKept(made, ONE_COMMIT);
  git(repo, 'merge', '--quiet', branch);
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(branches()).toEqual(['main']);
});

test.each(['rev-list', 'rev-parse'])('a git %s that is killed hides no commit', async (command) => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '--detach');
  commit(made.workdir, { new: 'x' }, 'work');
  if (command === 'rev-parse') git(made.workdir, 'branch', '-D', made.branch!);
  const isKilled = (args: string[]) => args.includes(command) && !args.includes('--git-common-dir');
  answer = (args, result) => (isKilled(args) ? killed(result) : result);
  await expect(remove(made)).rejects.toMatchObject({ code: 'git_interrupted' });
  answer = (_, result) => result;
  await expectKept(made, ONE_COMMIT);
});

test('a creation that is repeated keeps the files, whatever git says about its refs', async () => {
  const made = await create();
  writeFileSync(join(made.workdir, 'note'), 'kept');
  for (const ref of ['main@{u}', '@{u}', 'none', 'main..main', '^main', 'main^@', 'HEAD:a.txt']) {
    expect(await create({ ref }), ref).toEqual(made);
    await expect(create({ ref, agent_id: 'agt_two' }), ref).rejects.toMatchObject({ kind: 'invalid' });
  }
  answer = (args, result) => (args.some((arg) => arg.startsWith('refs/heads/')) ? killed(result) : result);
  await expect(create()).rejects.toMatchObject({ kind: 'unavailable', message: 'git ended with SIGKILL' });
  answer = (_, result) => result;
  expect(await create()).toEqual(made);
  expect(readFileSync(join(made.workdir, 'note'), 'utf8')).toBe('kept');
});

test.each(['sub', 'two\nlines', 'sub\t160000 '])('keeps a worktree with the submodule %j', async (name) => {
  const other = makeRepository(join(folder.path, 'safe/other'), { x: 'x' });
  git(repo, '-c', 'protocol.file.allow=always', 'clone', '--quiet', other, join(repo, name));
  git(repo, 'update-index', '--add', '--cacheinfo', `160000,${git(other, 'rev-parse', 'HEAD')},${name}`);
  git(repo, 'commit', '--quiet', '--message', 'submodule');
  const made = await create();
  expect(await folders.whyKept(made)).toBe(null);
  git(repo, '-c', 'protocol.file.allow=always', 'clone', '--quiet', other, join(made.workdir, name));
  await expectKept(made, 'submodules');
});

test.runIf(process.platform === 'linux')(
  'keeps a worktree with a submodule whose name is not UTF-8',
  async () => {
    const other = makeRepository(join(folder.path, 'safe/other'), { x: 'x' });
    const name = Buffer.from([0x73, 0xff]);
    const entry = Buffer.from(`160000 ${git(other, 'rev-parse', 'HEAD')}\t`);
    const input = Buffer.concat([entry, name, Buffer.of(0)]);
    execFileSync('git', ['-C', repo, 'update-index', '-z', '--index-info'], { input });
    git(repo, 'commit', '--quiet', '--message', 'submodule');
    const made = await create();
    renameSync(other, Buffer.concat([Buffer.from(`${made.workdir}/`), name]));
    await expectKept(made, 'submodules');
  },
);

test('an index that is too long to list with its submodules hides no change behind a mark', async () => {
  const made = await create();
  git(made.workdir, 'update-index', '--assume-unchanged', 'a.txt');
  writeFileSync(join(made.workdir, 'a.txt'), 'precious\n');
  for (const n of Array.from({ length: 50 }).keys()) writeFileSync(join(made.workdir, `new-${n}`), 'x');
  change = (args, options) => (args.includes('--stage') ? { ...options, output_bytes_max: 60 } : options);
  await expectKept(made, 'uncommitted changes, untracked files, submodules');
});

test.each<[what: string, begin: (path: string) => void]>([
  ['merge', (path) => git(path, 'merge', '--no-commit', '--no-ff', 'other')],
  ['rebase', (path) => git(path, 'rebase', '--exec', 'false', 'other')],
])('keeps a worktree in the middle of a %s', async (_, begin) => {
  git(repo, 'branch', 'other');
  const made = await create();
  commit(made.workdir, { mine: 'x' }, 'mine');
  const theirs = join(folder.path, 'theirs');
  git(repo, 'worktree', 'add', '--quiet', theirs, 'other');
  commit(theirs, { theirs: 'x' }, 'theirs');
  try {
    begin(made.workdir);
  } catch {
    // The rebase stops.
  }
  expect((await remove(made)).removed).toBe(false);
  expect(readFileSync(join(made.workdir, 'mine'), 'utf8')).toBe('x');
});

test('removes a record of another agent that names the folder of a removed worktree', async () => {
  const made = await create({ workdir: join(folder.path, 'safe/feature') });
  const record = join(repo, '.git/worktrees/forged');
  const files = { gitdir: `${made.workdir}/.git\n`, commondir: '../..\n', HEAD: 'ref: refs/heads/main\n' };
  answer = (args, result) => {
    if (!args.includes('remove')) return result;
    mkdirSync(record, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(record, file), text);
    return result;
  };
  expect(await remove(made)).toEqual({ removed: true, kept_because: null });
  expect(existsSync(record)).toBe(false);
  expect(existsSync(made.workdir)).toBe(false);
});
