import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from './config.ts';
import { type SandboxPaths, sandboxConflict, sandboxPaths } from './sandbox-paths.ts';

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-paths-')));
  for (const name of ['work/inner', 'data', 'home/.config/svc']) {
    await mkdir(join(root, name), { recursive: true });
  }
});
afterEach(() => rm(root, { recursive: true }));

const at = (name: string) => join(root, name);
const conflict = (hidden: string[], ...writable: string[]) =>
  refusal({ hidden: hidden.map(at), writable: writable.map(at) });
const refusal = (paths: Partial<SandboxPaths>) =>
  sandboxConflict({
    ...{ hidden: [], programs: [], path_folders: [], writable: [], repositories: [] },
    ...paths,
  });

test('accepts hidden paths beside and above folders that agents may write to', async () => {
  expect(await conflict(['data'], 'work')).toBeNull();
  expect(await conflict(['work'], 'work/inner')).toBeNull();
  expect(await conflict(['data', 'missing/file'], 'work', 'work/inner')).toBeNull();
});

test('rejects a hidden path below a folder that agents may write to, also through links and if it does not exist', async () => {
  const why = await conflict(['work/inner/data'], 'work');
  expect(why).toBe(
    `agents.sandbox cannot hide ${at('work/inner/data')}, because agents may write to ${at('work')} above it and could ` +
      `move it: take ${at('work')} out of safe_paths and agents.sandbox_write, or move ${at('work/inner/data')} elsewhere`,
  );
  await symlink(at('work/inner'), at('link'));
  expect(await conflict(['link/data'], 'work')).toContain('cannot hide');
  await symlink(root, at('work/up'));
  expect(await conflict(['data'], 'work/up')).toContain('cannot hide');
});

test('rejects a folder that agents could move through another folder', async () => {
  await symlink(at('work/inner'), at('alias'));
  expect(await conflict(['data'], 'work', 'alias')).toContain(
    `${at('alias')} leads into ${at('work')} through a link`,
  );
});

test('accepts a folder within another one, however their paths are written', async () => {
  const written = [`${at('work')}/`, `${root}/data/../work/inner`];
  expect(await refusal({ hidden: [at('data')], writable: written })).toBeNull();
  expect(await refusal({ hidden: [`${root}/work/../work/inner/x`], writable: [at('work')] })).toContain(
    'cannot hide',
  );
});

test('rejects folders in which agents could change programs of the service', async () => {
  for (const name of ['opt/svc/src', 'tools']) await mkdir(join(root, name), { recursive: true });
  const change = (program: string, folder: string) =>
    refusal({ programs: [at(program)], writable: [at(folder)] });
  expect(await change('opt/svc', 'opt')).toBe(
    `agents may write to ${at('opt')} and so change ${at('opt/svc')}, which the service runs: ` +
      `take ${at('opt')} out of safe_paths and agents.sandbox_write, or install svc elsewhere`,
  );
  expect(await change('opt/svc', 'opt/svc/src')).toContain('which the service runs');
  expect(await change('opt/svc', 'work')).toBeNull();
  // Agents can write to the folder of the link, but neither to the path nor to its target.
  await symlink(at('opt/svc'), at('work/inner/svc'));
  await symlink(at('work/inner/svc'), at('tools/svc'));
  expect(await change('tools/svc', 'work')).toContain('which the service runs');
});

test('rejects folders in which agents could put programs for others, also if they do not exist', async () => {
  const plant = (folder: string) => refusal({ path_folders: [at(folder)], writable: [at('work')] });
  expect(await plant('work/inner')).toBe(
    `agents may write to ${at('work')} and so put programs into ${at('work/inner')}, from which other users' agents run them: ` +
      `take ${at('work')} out of safe_paths and agents.sandbox_write, or take ${at('work/inner')} out of the PATH of the service`,
  );
  expect(await plant('work/not/yet')).toContain('from which other users');
  expect(await plant('home')).toBeNull();
  expect(await refusal({ path_folders: [at('work')], writable: [at('work/inner')] })).toBeNull();
});

test('rejects repositories in a hidden folder, which would uncover it, and accepts those around one', async () => {
  const show = (folder: string) => refusal({ hidden: [at('work')], repositories: [at(folder)] });
  expect(await show('work')).toBe(
    `agents.sandbox hides ${at('work')} from agents, so they cannot use the repositories in ${at('work')}: ` +
      `take ${at('work')} out of worktree.repo_roots, or move ${at('work')} elsewhere`,
  );
  expect(await show('work/inner')).toContain('cannot use the repositories');
  await symlink(at('work'), at('repos'));
  expect(await show('repos')).toContain('cannot use the repositories');
  expect(await refusal({ hidden: [at('work/inner')], repositories: [at('work')] })).toBeNull();
});

test('rejects a hidden folder in the git folder of a repository, which agents see', async () => {
  await mkdir(at('work/repo/.git/objects'), { recursive: true });
  await writeFile(at('work/repo/.git/HEAD'), '');
  expect(await conflict(['work/repo/.git/trees'])).toBe(
    `agents.sandbox cannot hide ${at('work/repo/.git/trees')}, because it is inside the git folder of a repository, ` +
      `which agents see: move ${at('work/repo/.git/trees')} elsewhere`,
  );
  expect(await conflict(['work/repo/.trees'])).toBeNull();
});

test('hides the data directory, credentials, files of secrets and worktrees of others', async () => {
  const env = {
    HOME: at('home'),
    PATH: '/usr/bin:relative::/opt/bin',
    SVC_DATA_DIR: at('data'),
    SVC_AGENTS_SANDBOX_WRITE: at('scratch'),
    SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET_FILE: at('secret'),
  };
  const config = loadConfig({
    env: { ...env, SVC_INTERNAL_GRPC_AUTH_SHARED_SECRET_FILE: '' },
    cwd: root,
    home: at('home'),
    tty: false,
  });
  const { hidden, writable, programs, path_folders } = await sandboxPaths(config, env, {
    safe_paths: [at('work')],
    repo_roots: [],
    worktree_roots: [at('trees'), at('earlier')],
  });
  expect(hidden).toEqual(
    expect.arrayContaining([at('data'), at('home/.config/svc'), at('secret'), at('trees'), at('earlier')]),
  );
  expect(writable).toEqual([at('work'), at('scratch')]);
  expect(path_folders).toEqual(['/usr/bin', '/opt/bin']);
  const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  expect(programs).toEqual(
    expect.arrayContaining([checkout, join(checkout, 'node_modules'), process.execPath]),
  );
  expect(programs.some((path) => path.endsWith('/rm'))).toBe(true);
});
