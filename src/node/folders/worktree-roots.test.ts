import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';
import { WorktreeRoots } from './worktree-roots.ts';

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-roots-')));
});
afterEach(() => rm(root, { recursive: true }));

test('keeps every recorded folder, even after a restart', async () => {
  const roots = await WorktreeRoots.open(root);
  await Promise.all(['/trees', '/other', '/trees'].map((path) => roots.record(path)));
  const again = await WorktreeRoots.open(root);
  expect(await again.outsideShared([])).toEqual(['/trees', '/other']);
  expect(await again.outsideShared(['/trees'])).toEqual(['/other']);
});

test('returns the recorded folders that are not empty', async () => {
  const roots = await WorktreeRoots.open(root);
  for (const name of ['full', 'empty']) await mkdir(join(root, name));
  await writeFile(join(root, 'full/x'), '');
  for (const name of ['full', 'empty', 'missing']) await roots.record(join(root, name));
  expect(await roots.inUse()).toEqual([join(root, 'full')]);
});

test('compares real paths with those of the folders that all agents share', async () => {
  const roots = await WorktreeRoots.open(root);
  for (const name of ['safe/trees', 'other']) await mkdir(join(root, name), { recursive: true });
  await symlink(join(root, 'safe'), join(root, 'link'));
  await roots.record(join(root, 'safe/trees'));
  for (const shared of ['safe', 'link', 'safe/', 'other/../safe/trees/..']) {
    expect(await roots.outsideShared([`${root}/${shared}`]), shared).toEqual([]);
  }
  expect(await roots.outsideShared([join(root, 'other')])).toEqual([join(root, 'safe/trees')]);
});

test('records a configured folder that already contains worktrees, by its real path', async () => {
  const data_dir = join(root, 'data');
  const made = ['trees/x-agt_1', 'safe/trees/x-agt_1', 'data/worktrees/x-agt_1', 'projects/mine'];
  for (const name of [...made, 'empty']) await mkdir(join(root, name), { recursive: true });
  await symlink(join(root, 'trees'), join(root, 'link'));
  const roots = await WorktreeRoots.open(data_dir);
  const used = ['link/', 'safe/trees', 'data/worktrees', 'projects', 'empty', 'missing'];
  for (const name of used) await roots.recordIfUsed(join(root, name), [join(root, 'safe')]);
  expect(await (await WorktreeRoots.open(data_dir)).outsideShared([])).toEqual([join(root, 'trees')]);
  // Agents no longer share the folder.
  await roots.recordIfUsed(join(root, 'safe/trees'), []);
  expect(await roots.outsideShared([])).toContain(join(root, 'safe/trees'));
});

test('throws if the list cannot be read', async () => {
  await writeFile(join(root, 'worktree-roots.json'), '{');
  await expect(WorktreeRoots.open(root)).rejects.toThrow();
});

test('records a worktree’s folder before it is created, unless all agents share that folder', async () => {
  const roots = await WorktreeRoots.open(root);
  let worktree_root = join(root, 'trees');
  const folders = openFolders({
    ...{ data_dir: join(root, 'data'), exec: directExec, env: process.env, run_as: null, roots },
    safe_paths: () => [join(root, 'safe')],
    worktree_root: () => worktree_root,
    repo_roots: () => [],
  });
  const request = { agent_id: 'agt_one', name: 'x', workdir: null, repo: null, ref: null };
  const { workdir } = await folders.createWorktree(request);
  worktree_root = join(root, 'safe/trees');
  await folders.createWorktree(request);
  const noted = await readFile(join(root, 'worktree-roots.json'), 'utf8');
  expect(JSON.parse(noted)).toEqual([join(root, 'trees')]);
  expect(await folders.resolve(workdir)).toEqual({
    path: workdir,
    below_worktree_root: true,
    claimed_by: 'agt_one',
  });
});
