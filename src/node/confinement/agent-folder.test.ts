import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agentFolder } from './agent-folder.ts';

const run_as = { name: 'agents', uid: 65534, gid: 65534, home: '/' };

test('the folder name depends only on the real path of the data directory, even before it exists', async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'svc-agent-folder-')));
  onTestFinished(() => rm(root, { recursive: true }));
  const nameFor = async (data_dir: string) =>
    basename(await agentFolder('state', { data_dir, run_as, env: {} }));
  const before = await nameFor(join(root, 'lib/data'));
  await mkdir(join(root, 'lib/data'), { recursive: true });
  await symlink(join(root, 'lib'), join(root, 'link'));
  expect([await nameFor(join(root, 'lib/data')), await nameFor(join(root, 'link/data'))]).toEqual([
    before,
    before,
  ]);
});
