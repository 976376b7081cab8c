import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from './config.ts';
import { sandboxConflict, sandboxPaths } from './sandbox-paths.ts';

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
  sandboxConflict({ hidden: hidden.map(at), writable: writable.map(at) });

test('accepts hidden paths beside and above what agents may write to', async () => {
  expect(await conflict(['data'], 'work')).toBeNull();
  expect(await conflict(['work'], 'work/inner')).toBeNull();
  expect(await conflict(['data', 'missing/file'], 'work', 'work/inner')).toBeNull();
});

test('refuses a hidden path below what agents may write to, through links and before it exists', async () => {
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

test('refuses a folder whose place agents of another one decide', async () => {
  await symlink(at('work/inner'), at('alias'));
  expect(await conflict(['data'], 'work', 'alias')).toContain(`decide where ${at('alias')} leads`);
});

test('hides the data directory, credentials, files of secrets and worktrees of others', () => {
  const env = {
    HOME: at('home'),
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
  const { hidden, writable } = sandboxPaths(config, env, {
    safe_paths: [at('work')],
    worktree_root: at('trees'),
  });
  expect(hidden).toEqual(
    expect.arrayContaining([at('data'), at('home/.config/svc'), at('secret'), at('trees')]),
  );
  expect(writable).toEqual([at('work'), at('scratch')]);
});
