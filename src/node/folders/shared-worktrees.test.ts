/** Worktrees that agents use one after the other: the node finds them again, and the commits of all of them count. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Folders, WorktreeRequest } from '../../core/node.ts';
import {
  commit,
  git,
  makeRepository,
  type TemporaryFolder,
  temporaryFolder,
} from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';

let folder: TemporaryFolder;
let repo: string;
let folders: Folders;
let claims: string;

beforeEach(() => {
  folder = temporaryFolder();
  const safe = join(folder.path, 'safe');
  const data_dir = join(folder.path, 'data');
  claims = join(data_dir, 'worktree-claims');
  repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
  folders = openFolders({
    data_dir,
    safe_paths: () => [safe],
    worktree_root: () => join(data_dir, 'worktrees'),
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const create = (changes: Partial<WorktreeRequest> = {}) =>
  folders.createWorktree({ agent_id: 'agt_one', name: 'dev', workdir: null, repo, ref: null, ...changes });
const remove = (worktree: Awaited<ReturnType<typeof create>>) =>
  folders.removeWorktree(worktree, { force: false });

/** Makes the claims those of a release that did not record where worktrees started. */
function forgetBases(): void {
  for (const name of readdirSync(claims)) {
    const { base: _, ...claim } = JSON.parse(readFileSync(join(claims, name), 'utf8'));
    writeFileSync(join(claims, name), JSON.stringify(claim));
  }
}

test('a worktree starts from the same commit for the agents after the first', async () => {
  const made = await create();
  commit(made.workdir, { 'b.txt': 'two\n' }, 'work');
  expect(await create()).toEqual(made);
  const { files } = await folders.changes(await create());
  expect(files.map(({ path }) => path)).toEqual(['b.txt']);
  rmSync(made.workdir, { recursive: true });
  expect(await create()).toEqual(made);
});

test('the commits of an earlier agent are kept, also if the plane names a later base', async () => {
  const made = await create();
  commit(made.workdir, { 'b.txt': 'two\n' }, 'work');
  const late = { ...made, base: git(made.workdir, 'rev-parse', 'HEAD') };
  const kept = { removed: false, kept_because: '1 commit on no remote and no other branch' };
  for (const worktree of [made, late, { ...made, base: null }]) {
    expect(await folders.whyKept(worktree)).toBe(kept.kept_because);
    expect(await remove(worktree)).toEqual(kept);
  }
  expect(await folders.removeWorktree(late, { force: true })).toEqual({ ...kept, removed: true });
  expect(git(repo, 'log', '--format=%s', '-1', made.branch!)).toBe('work');
});

test('the base of a worktree is unknown if the claim of an earlier release does not name it', async () => {
  const made = await create();
  commit(made.workdir, { 'b.txt': 'two\n' }, 'work');
  forgetBases();
  expect(await create()).toEqual({ ...made, base: null });
  expect((await remove({ ...made, base: null })).removed).toBe(false);
});

test('the base of a worktree that is made again from its branch is unknown', async () => {
  const made = await create();
  commit(made.workdir, { 'b.txt': 'two\n' }, 'work');
  await folders.removeWorktree(made, { force: true });
  const again = await create();
  expect(again).toEqual({ ...made, base: null });
  expect(readFileSync(join(again.workdir, 'b.txt'), 'utf8')).toBe('two\n');
  expect((await remove(again)).removed).toBe(false);
});

test.each<[what: string, change: (path: string) => void]>([
  ['switched to another branch', (path) => git(path, 'checkout', '--quiet', '-b', 'feature')],
  ['detached its HEAD', (path) => git(path, 'checkout', '--quiet', '--detach')],
  ['renamed its branch', (path) => git(path, 'branch', '--move', 'feature')],
  ['deleted its branch', (path) => git(path, 'update-ref', '-d', 'HEAD')],
  [
    'switched to another branch and locked the worktree',
    (path) => {
      git(path, 'checkout', '--quiet', '-b', 'feature');
      git(path, 'worktree', 'lock', path);
    },
  ],
])('a worktree whose agent %s is found again with its files', async (_, change) => {
  const made = await create();
  writeFileSync(join(made.workdir, 'note'), 'kept');
  change(made.workdir);
  expect(await create()).toEqual(made);
  expect(readFileSync(join(made.workdir, 'note'), 'utf8')).toBe('kept');
});

test('commits without a branch are kept after another agent has used the worktree', async () => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '--detach');
  commit(made.workdir, { 'b.txt': 'two\n' }, 'work');
  expect(await remove(await create())).toEqual({
    removed: false,
    kept_because: '1 commit on no remote and no other branch',
  });
});

test('a folder that its agent made a repository of its own is not taken for the worktree', async () => {
  const made = await create();
  git(made.workdir, 'checkout', '--quiet', '-b', 'feature');
  rmSync(join(made.workdir, '.git'));
  git(made.workdir, 'init', '--quiet');
  await expect(create()).rejects.toThrow('workdir is not empty');
  expect(existsSync(join(made.workdir, 'a.txt'))).toBe(true);
});
