import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
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
const lines = Array.from({ length: 40 }, (_, n) => `line ${n}\n`).join('');

beforeEach(() => {
  folder = temporaryFolder();
  const safe = join(folder.path, 'safe');
  repo = makeRepository(join(safe, 'repo'), {
    'keep.txt': lines,
    'gone.txt': 'gone\n',
    'old.txt': lines,
    'type.txt': 'x\n',
    'folder.txt': 'x\n',
    'sub/inner.txt': 'inner\n',
    '.gitignore': 'ignored\n',
  });
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => null,
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: folder.path, XDG_CONFIG_HOME: '' },
    run_as: null,
  });
});
afterEach(() => folder.remove());

const write = (name: string, data: string | Buffer) => {
  mkdirSync(dirname(join(repo, name)), { recursive: true });
  writeFileSync(join(repo, name), data);
};
const patch = (workdir = repo, base: string | null = null) => folders.patch({ workdir, base });

/** Applies the patch to a clean checkout of a commit; returns its files as git would commit them. */
function applied(bytes: Uint8Array, base: string): string {
  const clone = join(folder.path, 'clone');
  git(folder.path, 'clone', '--quiet', repo, clone);
  git(clone, 'checkout', '--quiet', base);
  execFileSync('git', ['apply', '--index', '-'], { cwd: clone, input: bytes });
  return git(clone, 'write-tree');
}

function treeOf(workdir: string): string {
  git(workdir, 'add', '--all');
  return git(workdir, 'write-tree');
}

test('a patch applied to a clean checkout gives the same tree', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  commit(repo, { 'committed.txt': 'x\n' }, 'work');
  write('keep.txt', lines.replace('line 20', 'changed'));
  rmSync(join(repo, 'gone.txt'));
  git(repo, 'mv', 'old.txt', 'new.txt');
  rmSync(join(repo, 'type.txt'));
  symlinkSync('keep.txt', join(repo, 'type.txt'));
  rmSync(join(repo, 'folder.txt'));
  write('folder.txt/deep.txt', 'deep');
  write('fresh/b c.txt', 'x\ny');
  write('empty', '');
  write('-', 'a dash');
  write('"quoted"\n', 'odd');
  write('binary', Buffer.from([0, 1, 2, 255, 0, 10]));
  write('run.sh', '#!/bin/sh\n');
  chmodSync(join(repo, 'run.sh'), 0o755);
  write('ignored', 'x');
  const index = readFileSync(join(repo, '.git/index'));
  const bytes = await patch(repo, base);
  expect(readFileSync(join(repo, '.git/index')).equals(index)).toBe(true);
  expect(Buffer.from(bytes).toString('latin1')).toContain('GIT binary patch');
  const made = applied(bytes, base);
  expect(made).toBe(treeOf(repo));
});

test('the repository’s settings cannot cause a patch that does not apply', async () => {
  for (const [key, value] of [
    ['diff.context', '0'],
    ['diff.noprefix', 'true'],
    ['diff.mnemonicPrefix', 'true'],
    ['diff.external', 'false'],
    ['diff.relative', 'true'],
    ['color.ui', 'always'],
    ['core.abbrev', '4'],
  ] as const) {
    git(repo, 'config', key, value);
  }
  write('keep.txt', lines.replace('line 20', 'changed'));
  write('binary', Buffer.from([0, 1, 2]));
  const base = git(repo, 'rev-parse', 'HEAD');
  expect(applied(await patch(), base)).toBe(treeOf(repo));
});

test('includes a change of the same size in the same second as the index', async () => {
  const second = Math.floor(Date.now() / 1000) - 60;
  // Without this, git would notice the change by the file's change time.
  git(repo, 'config', 'core.trustctime', 'false');
  const writeThen = (text: string) => {
    write('gone.txt', text);
    utimesSync(join(repo, 'gone.txt'), second, second);
  };
  writeThen('same\n');
  git(repo, 'commit', '--quiet', '--all', '--message', 'same');
  writeThen('size\n');
  utimesSync(join(repo, '.git/index'), second, second);
  expect(Buffer.from(await patch()).toString()).toContain('+size');
});

test('for a workdir below the top of a repository, the patch contains only changes there', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  write('sub/inner.txt', 'changed\n');
  write('sub/new.txt', 'new\n');
  const tree = treeOf(repo);
  git(repo, 'reset', '--quiet');
  write('keep.txt', 'not below\n');
  write('beside.txt', 'not below\n');
  const bytes = await patch(join(repo, 'sub'));
  expect(Buffer.from(bytes).toString()).toContain('+++ b/sub/new.txt');
  expect(applied(bytes, base)).toBe(tree);
});

test('includes conflicted files as they are on disk', async () => {
  const base = git(repo, 'rev-parse', 'HEAD');
  git(repo, 'checkout', '--quiet', '-b', 'other');
  commit(repo, { 'gone.txt': 'theirs\n' }, 'theirs');
  git(repo, 'checkout', '--quiet', 'main');
  commit(repo, { 'gone.txt': 'ours\n' }, 'ours');
  expect(() => git(repo, 'merge', 'other')).toThrow();
  const bytes = await patch(repo, base);
  expect(Buffer.from(bytes).toString()).toContain('+<<<<<<< HEAD');
  expect(applied(bytes, base)).toBe(treeOf(repo));
});

test('includes all files of a repository without commits, and nothing without a repository', async () => {
  const safe = join(folder.path, 'safe');
  const bare = makeRepository(join(safe, 'bare'));
  writeFileSync(join(bare, 'first.txt'), 'first\n');
  expect(Buffer.from(await patch(bare)).toString()).toContain('+first');
  mkdirSync(join(safe, 'plain'));
  expect(await patch(join(safe, 'plain'))).toHaveLength(0);
});

test('omits a repository within the workdir', async () => {
  makeRepository(join(repo, 'nested'), { 'secret.txt': 'x\n' });
  write('beside.txt', 'x\n');
  const text = Buffer.from(await patch()).toString();
  expect(text).toContain('beside.txt');
  expect(text).not.toContain('nested');
});

test('rejects a patch that is too large instead of truncating it', async () => {
  write(
    'large',
    Buffer.from(Array.from({ length: limits.patch_bytes_max / 8 }, (_, n) => `${n % 10}23456\n`).join('')),
  );
  write('more', 'x'.repeat(limits.patch_bytes_max / 4));
  await expect(patch()).rejects.toMatchObject({ kind: 'too_large', code: 'patch_too_large' });
});
