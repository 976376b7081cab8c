import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { directExec } from '../processes/exec.ts';
import { makeAgentFolder, openAgentFolder } from './agent-folder.ts';
import { ownerState, removeOwnerState } from './owner-state.ts';
import { findUser, type RunAs } from './run-as.ts';

const possible = process.platform === 'linux' && process.getuid?.() === 0;
const asRoot = test.skipIf(!possible);

let root: string;
let data_dir: string;
let nobody: RunAs;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'svc-owner-state-')));
  await chmod(root, 0o711);
  data_dir = join(root, 'data');
  await mkdir(data_dir);
  if (possible) nobody = await findUser(directExec, 'nobody');
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** The state folder of an agent, created as the sandbox does. */
async function stateOf(
  run_as: RunAs | null,
  owner_id: string,
  name = 'claude/.claude',
  team_id: string | null = null,
): Promise<string> {
  const base = await openAgentFolder('state', { data_dir, run_as, env: {} });
  return makeAgentFolder(base, join(ownerState(run_as, owner_id, team_id)!, name), run_as);
}

async function theirs(path: string, mode: number): Promise<void> {
  await chown(path, nobody.uid, nobody.gid);
  await chmod(path, mode);
}

test('removes folders that their own user cannot enter, without following links', async () => {
  const state = await stateOf(null, 'usr_a');
  await mkdir(join(root, 'outside'));
  await writeFile(join(root, 'outside/file'), 'kept');
  await mkdir(join(state, 'closed/inner'), { recursive: true });
  await symlink(join(root, 'outside'), join(state, 'link'));
  for (const name of ['closed/inner', 'closed']) await chmod(join(state, name), 0o500);
  await removeOwnerState(directExec, data_dir, 'usr_a');
  expect(await readdir(join(data_dir, 'state'))).toEqual([]);
  expect(await readFile(join(root, 'outside/file'), 'utf8')).toBe('kept');
});

asRoot('removes the state of one owner for every system user, and no other state (needs root)', async () => {
  const earlier = { ...nobody, uid: 4_294_000, gid: 4_294_000 };
  const others = await stateOf(nobody, 'usr_b');
  for (const run_as of [nobody, earlier]) {
    const state = await stateOf(run_as, 'usr_a', 'opencode/.config/opencode');
    await mkdir(join(state, 'closed'));
    await writeFile(join(state, 'closed/file'), '');
    for (const name of ['closed/file', 'closed']) await chown(join(state, name), run_as.uid, run_as.gid);
    await chmod(join(state, 'closed'), 0);
  }
  await removeOwnerState(directExec, data_dir, 'usr_a');
  const base = await openAgentFolder('state', { data_dir, run_as: nobody, env: {} });
  expect(await readdir(join(base, `${earlier.uid}`))).toEqual([]);
  expect(await readdir(join(base, `${nobody.uid}`))).toEqual(['usr_b']);
  expect(await readdir(dirname(others))).toEqual(['.claude']);
});

for (const with_account of [false, true]) {
  const run = with_account ? asRoot : test;
  const note = with_account ? ', as another account (needs root)' : '';

  run(
    `keeps the state of a team's agents apart, and removes it with the user or the team${note}`,
    async () => {
      const run_as = with_account ? nobody : null;
      const base = await openAgentFolder('state', { data_dir, run_as, env: {} });
      const at = with_account ? join(base, `${nobody.uid}`) : base;
      const own = await stateOf(run_as, 'usr_a');
      const theirs = await Promise.all(
        [1, 2].flatMap((n) =>
          ['usr_a', 'usr_b'].map((user) => stateOf(run_as, user, 'claude/.claude', `team_${n}`)),
        ),
      );
      expect(new Set([own, ...theirs]).size).toBe(5);
      await removeOwnerState(directExec, data_dir, 'usr_a');
      expect(await readdir(at)).toEqual(['team_1', 'team_2']);
      for (const team of ['team_1', 'team_2']) expect(await readdir(join(at, team))).toEqual(['usr_b']);
      await removeOwnerState(directExec, data_dir, 'team_1');
      expect(await readdir(at)).toEqual(['team_2']);
      for (const id of ['usr_b', 'team_', '..', 'team_/../usr_b']) {
        const path = ownerState(run_as, 'usr_b', id);
        expect(path === null || path.endsWith('team_/usr_b'), id).toBe(true);
      }
    },
  );
}

asRoot('removes what agents may change with the rights of their user (needs root)', async () => {
  const state = await stateOf(nobody, 'usr_a');
  // Root could remove it, but the agents' user cannot.
  await mkdir(join(state, 'planted'), { mode: 0o755 });
  await writeFile(join(state, 'planted/file'), '');
  await expect(removeOwnerState(directExec, data_dir, 'usr_a')).rejects.toThrow('usr_a cannot be removed: ');
  expect(await readdir(join(state, 'planted'))).toEqual(['file']);
  await theirs(join(state, 'planted'), 0o755);
  await removeOwnerState(directExec, data_dir, 'usr_a');
  const base = await openAgentFolder('state', { data_dir, run_as: nobody, env: {} });
  expect(await readdir(join(base, `${nobody.uid}`))).toEqual([]);
});
