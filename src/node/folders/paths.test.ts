import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Folders } from '../../core/node.ts';
import { type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';
import { isInside } from './paths.ts';

const OUTSIDE = 'workdir path must be within allowed safe paths';
const MISSING = 'workdir does not exist';
let folder: TemporaryFolder;
let safe: string;
let folders: Folders;

beforeEach(() => {
  folder = temporaryFolder();
  safe = join(folder.path, 'safe');
  for (const name of ['safe/in', 'safe-evil', 'outside/secret', 'data/worktrees/one', 'data/db']) {
    mkdirSync(join(folder.path, name), { recursive: true });
  }
  folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => join(folder.path, 'data/worktrees'),
    repo_roots: () => [],
    exec: directExec,
    env: process.env,
    run_as: null,
  });
});
afterEach(() => folder.remove());

test('resolves a workdir inside a safe path to its real path', async () => {
  symlinkSync('in', join(safe, 'link'));
  expect(await folders.resolve(safe)).toEqual({ path: safe, below_worktree_root: false, claimed_by: null });
  expect(await folders.resolve(`${safe}//./in/`)).toEqual({
    path: join(safe, 'in'),
    below_worktree_root: false,
    claimed_by: null,
  });
  expect(await folders.resolve(join(safe, 'link'))).toEqual({
    path: join(safe, 'in'),
    below_worktree_root: false,
    claimed_by: null,
  });
  expect(await folders.resolve(`${safe}/in/../in`)).toEqual({
    path: join(safe, 'in'),
    below_worktree_root: false,
    claimed_by: null,
  });
});

test('rejects the data directory but accepts its worktrees', async () => {
  const worktree = join(folder.path, 'data/worktrees/one');
  expect(await folders.resolve(worktree)).toEqual({
    path: worktree,
    below_worktree_root: true,
    claimed_by: null,
  });
  await expect(folders.resolve(join(folder.path, 'data/db'))).rejects.toThrow(OUTSIDE);
});

test('rejects the folder of all worktrees, and a link to one of them', async () => {
  await expect(folders.resolve(join(folder.path, 'data/worktrees'))).rejects.toThrow(OUTSIDE);
  symlinkSync(join(folder.path, 'data/worktrees/one'), join(safe, 'theirs'));
  await expect(folders.resolve(join(safe, 'theirs'))).rejects.toThrow(OUTSIDE);
});

test('rejects an empty, a relative, an outside and a missing workdir, in this order', async () => {
  await expect(folders.resolve('')).rejects.toThrow('workdir is required');
  for (const path of ['in', './in', '../safe/in', '~/x', `safe\0`]) {
    await expect(folders.resolve(path)).rejects.toThrow('workdir must be absolute');
  }
  await expect(folders.resolve('/etc')).rejects.toThrow(OUTSIDE);
  await expect(folders.resolve('/no/such/folder')).rejects.toThrow(OUTSIDE);
  await expect(folders.resolve(`${safe}/none/at/all`)).rejects.toThrow(MISSING);
});

test('rejects a sibling whose name starts like a safe path', async () => {
  await expect(folders.resolve(`${safe}-evil`)).rejects.toThrow(OUTSIDE);
  await expect(folders.resolve(`${safe}/../safe-evil`)).rejects.toThrow(OUTSIDE);
  expect(isInside('/a/b', '/a/bc')).toBe(false);
  expect(isInside('/a/b', '/a/b/c')).toBe(true);
  expect(isInside('/', '/a')).toBe(true);
});

test('dots never lead outside, through existing or missing folders', async () => {
  for (const tail of [
    '..',
    '../outside',
    'in/../../outside',
    'none/../../outside',
    'none/../..',
    '../../../../etc',
  ]) {
    await expect(folders.resolve(`${safe}/${tail}`), tail).rejects.toThrow(OUTSIDE);
  }
});

test('rejects links that lead outside: to a folder, in the middle, to a missing target, in a loop', async () => {
  symlinkSync(join(folder.path, 'outside'), join(safe, 'out'));
  symlinkSync('../outside/later', join(safe, 'dangling'));
  symlinkSync('circle', join(safe, 'circle'));
  for (const tail of ['out', 'out/secret', 'out/none', 'dangling', 'dangling/x', 'circle', 'circle/x']) {
    await expect(folders.resolve(join(safe, tail)), tail).rejects.toThrow(OUTSIDE);
  }
});

test('reports a link to a missing path inside as missing', async () => {
  symlinkSync('later', join(safe, 'soon'));
  await expect(folders.resolve(join(safe, 'soon'))).rejects.toThrow(MISSING);
});

test('rejects control characters, invalid Unicode and long names', async () => {
  await expect(folders.resolve(`${safe}/a\0b`)).rejects.toThrow(
    'workdir must not contain control characters',
  );
  await expect(folders.resolve(`${safe}/a\nb`)).rejects.toThrow(
    'workdir must not contain control characters',
  );
  await expect(folders.resolve(`${safe}/\ud800`)).rejects.toThrow('workdir must be valid Unicode');
  await expect(folders.resolve(`${safe}/${'x'.repeat(5_000)}`)).rejects.toThrow('workdir is too long');
  await expect(folders.resolve(`${safe}/${'x/'.repeat(2_500)}`)).rejects.toThrow('workdir is too long');
  await expect(folders.resolve(`${safe}/${'x'.repeat(256)}`)).rejects.toThrow('workdir is too long');
  await expect(folders.resolve(`/${'/'.repeat(900_000)}`)).rejects.toThrow('workdir is too long');
});

test('rejects a file as workdir', async () => {
  writeFileSync(join(safe, 'file'), '');
  await expect(folders.resolve(join(safe, 'file'))).rejects.toThrow('workdir is not a directory');
  await expect(folders.resolve(join(safe, 'file/x'))).rejects.toThrow(MISSING);
});

test('a folder that keeps being replaced by a link is rejected or resolved inside', async () => {
  const target = join(safe, 'flip');
  let swapping = true;
  const swapper = (async () => {
    while (swapping) {
      mkdirSync(target, { recursive: true });
      await rm(target, { recursive: true, force: true });
      await symlink(join(folder.path, 'outside'), join(safe, 'next'));
      await rename(join(safe, 'next'), target);
      await rm(target);
    }
  })();
  for (let round = 0; round < 300; round++) {
    const answer = await folders.resolve(target).then(
      ({ path }) => path,
      (error: Error) => error.message,
    );
    expect([target, OUTSIDE, MISSING, 'workdir is not a directory']).toContain(answer);
  }
  swapping = false;
  await swapper;
});
