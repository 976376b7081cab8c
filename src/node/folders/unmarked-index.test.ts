import { existsSync, mkdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Folders } from '../../core/node.ts';
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

beforeEach(() => {
  folder = temporaryFolder();
  repo = makeRepository(join(folder.path, 'safe/repo'), {
    'a.txt': 'one\n',
    'sub/b.txt': 'one\n',
    'wanted/c.txt': 'one\n',
  });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const write = (name: string, text: string) => writeFileSync(join(repo, name), text);
const patch = async (workdir = repo, base: string | null = null) =>
  Buffer.from(await folders.patch({ workdir, base })).toString();
async function listed(workdir = repo, base: string | null = null): Promise<string[]> {
  const { files } = await folders.changes({ workdir, base });
  return files.map(({ status, path }) => `${status} ${path}`);
}

test.each(['assume-unchanged', 'skip-worktree'])('%s hides no change', async (mark) => {
  git(repo, 'update-index', `--${mark}`, 'a.txt', 'sub/b.txt', 'wanted/c.txt');
  const index = git(repo, 'ls-files', '-v');
  write('a.txt', 'changed\n');
  write('sub/b.txt', 'changed\n');
  rmSync(join(repo, 'wanted/c.txt'));
  expect(git(repo, 'status', '--porcelain')).toBe('');
  expect(await listed()).toEqual(['modified a.txt', 'modified sub/b.txt', 'deleted wanted/c.txt']);
  expect(await listed(join(repo, 'sub'))).toEqual(['modified b.txt']);
  const { diff } = await folders.change({ workdir: repo, base: null }, 'a.txt');
  expect(diff).toContain('+changed');
  expect((await patch()).match(/^diff --git .*$/gm)).toHaveLength(3);
  expect((await patch(join(repo, 'sub'))).match(/^diff --git .*$/gm)).toHaveLength(1);
  expect(git(repo, 'ls-files', '-v')).toBe(index);
});

test('finds a change behind a mark even if the size and the second match the index', async () => {
  const second = Math.floor(Date.now() / 1000) - 60;
  git(repo, 'config', 'core.trustctime', 'false');
  const writeThen = (text: string) => {
    write('a.txt', text);
    utimesSync(join(repo, 'a.txt'), second, second);
  };
  writeThen('same\n');
  git(repo, 'commit', '--quiet', '--all', '--message', 'same');
  git(repo, 'update-index', '--assume-unchanged', 'a.txt');
  writeThen('size\n');
  utimesSync(join(repo, '.git/index'), second, second);
  expect(await listed()).toEqual(['modified a.txt']);
  expect(await patch()).toContain('+size');
});

test('files outside a sparse checkout do not show as deleted, and existing ones show', async () => {
  git(repo, 'sparse-checkout', 'set', 'wanted');
  expect(existsSync(join(repo, 'sub'))).toBe(false);
  expect(await listed()).toEqual([]);
  expect(await patch()).toBe('');
  git(repo, 'config', 'sparse.expectFilesOutsideOfPatterns', 'true');
  mkdirSync(join(repo, 'sub'));
  write('sub/b.txt', 'changed\n');
  expect(await listed()).toEqual(['modified sub/b.txt']);
  expect(await patch()).toContain('+changed');
});

test('shows the real commit or blob instead of a replacement', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  commit(repo, { 'a.txt': 'changed\n' }, 'work');
  const after = git(repo, 'rev-parse', 'HEAD');
  git(repo, 'replace', base, after);
  expect(git(repo, 'diff', base)).toBe('');
  expect(await listed(repo, base)).toEqual(['modified a.txt']);
  expect(await patch(repo, base)).toContain('-one\n+changed');
  git(repo, 'replace', '--delete', base);
  git(repo, 'replace', '-f', git(repo, 'rev-parse', `${base}:a.txt`), git(repo, 'rev-parse', 'HEAD:a.txt'));
  expect(await patch(repo, base)).toContain('-one\n+changed');
});

test('keeps a worktree with work behind a mark or a graft', async () => {
  mkdirSync(join(folder.path, 'safe/tree'));
  const made = await folders.createWorktree({
    ...{ agent_id: 'agt_one', name: 'x', workdir: join(folder.path, 'safe/tree'), repo, ref: null },
  });
  git(made.workdir, 'update-index', '--assume-unchanged', 'a.txt');
  writeFileSync(join(made.workdir, 'a.txt'), 'precious\n');
  expect((await folders.removeWorktree(made, { force: false })).kept_because).toBe('uncommitted changes');
  git(made.workdir, 'update-index', '--no-assume-unchanged', 'a.txt');
  commit(made.workdir, {}, 'work');
  const tip = git(made.workdir, 'rev-parse', 'HEAD');
  // Makes the tip look like the parent of main.
  writeFileSync(join(repo, '.git/info/grafts'), `${git(repo, 'rev-parse', 'main')} ${tip}\n`);
  expect((await folders.removeWorktree(made, { force: false })).kept_because).toContain('1 commit on no');
  expect(statSync(made.workdir).isDirectory()).toBe(true);
});
