import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commit, makeRepository, type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { directExec } from '../exec.ts';
import { asUser, findUser } from '../run-as.ts';
import { openFolders } from './folders.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;
let folder: TemporaryFolder;

beforeEach(() => {
  folder = temporaryFolder();
  chmodSync(folder.path, 0o755);
});
afterEach(() => folder.remove());

test('a command without a user to run as stays as it is', () => {
  expect(asUser(['git', 'status'], null)).toEqual(['git', 'status']);
});

test.runIf(as_root)('the user to run as must exist and not be root', async () => {
  expect((await findUser(directExec, 'nobody')).uid).toBeGreaterThan(0);
  await expect(findUser(directExec, 'root')).rejects.toThrow('agents.run_as must not be root');
  await expect(findUser(directExec, 'no-such-user')).rejects.toThrow('no such user');
});

test.runIf(as_root)('git, and whatever it runs, acts as the agents’ user and nothing more', async () => {
  const run_as = await findUser(directExec, 'nobody');
  const safe = join(folder.path, 'safe');
  const witness = join(safe, 'witness');
  const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
  commit(repo, { '.gitattributes': '*.txt filter=tell\n' }, 'attributes');
  const home = join(folder.path, 'home');
  mkdirSync(home);
  writeFileSync(join(home, '.gitconfig'), `[filter "tell"]\n\tsmudge = "id -u >> '${witness}'; cat"\n`);
  writeFileSync(witness, '');
  execFileSync('chown', ['-R', `${run_as.uid}:${run_as.gid}`, safe, home]);
  const folders = openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [safe],
    worktree_root: () => join(folder.path, 'worktrees'),
    repo_roots: () => [],
    exec: directExec,
    env: process.env,
    run_as: { ...run_as, home },
  });
  const request = { agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null };
  const made = await folders.createWorktree(request);
  expect(lstatSync(join(made.workdir, 'a.txt')).uid).toBe(run_as.uid);
  expect(readFileSync(witness, 'utf8').trim()).toBe(String(run_as.uid));
  expect(await folders.createWorktree(request)).toEqual(made);
  expect((await folders.changes(made)).files).toEqual([]);
  expect(await folders.removeWorktree(made, { force: false })).toEqual({ removed: true, kept_because: null });

  const empty = await folders.createWorktree({ ...request, agent_id: 'agt_two', repo: null });
  expect(lstatSync(empty.workdir).uid).toBe(run_as.uid);
  writeFileSync(join(empty.workdir, 'x'), '');
  expect((await folders.removeWorktree(empty, { force: true })).removed).toBe(true);
});

test.runIf(as_root)(
  'a repository that the agents’ user may not write to is refused in git’s words',
  async () => {
    const safe = join(folder.path, 'safe');
    const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
    const folders = openFolders({
      data_dir: join(folder.path, 'data'),
      safe_paths: () => [safe],
      worktree_root: () => join(folder.path, 'worktrees'),
      repo_roots: () => [],
      exec: directExec,
      env: process.env,
      run_as: await findUser(directExec, 'nobody'),
    });
    await expect(
      folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null }),
    ).rejects.toMatchObject({ kind: 'invalid', message: expect.stringMatching(/^fatal: /) });
  },
);
