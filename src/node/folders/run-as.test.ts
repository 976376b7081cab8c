import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readStat } from '../../base/proc.ts';
import { commit, makeRepository, type TemporaryFolder, temporaryFolder } from '../../testing/repository.ts';
import { asUser, findUser, type RunAs } from '../confinement/run-as.ts';
import { directExec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;
let folder: TemporaryFolder;

beforeEach(() => {
  folder = temporaryFolder();
  chmodSync(folder.path, 0o755);
});
afterEach(() => folder.remove());

test('leaves a command without a user unchanged', () => {
  expect(asUser(['git', 'status'], null)).toEqual(['git', 'status']);
  expect(asUser(['git'], { uid: 1, gid: 2 })[0]).toMatch(/^\//);
});

test.runIf(as_root)('requires an existing user that is not root', async () => {
  expect((await findUser(directExec, 'nobody')).uid).toBeGreaterThan(0);
  await expect(findUser(directExec, 'root')).rejects.toThrow('agents.run_as must not be root');
  await expect(findUser(directExec, 'no-such-user')).rejects.toThrow('no such user');
});

/** A repository whose checkout runs a filter of the agents' user, and folders in which that user works. */
async function withFilter(smudge: string) {
  const run_as = await findUser(directExec, 'nobody');
  const safe = join(folder.path, 'safe');
  const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
  commit(repo, { '.gitattributes': '*.txt filter=own\n' }, 'attributes');
  const home = join(folder.path, 'home');
  mkdirSync(home);
  writeFileSync(join(home, '.gitconfig'), `[filter "own"]\n\tsmudge = "${smudge}"\n`);
  execFileSync('chown', ['-R', `${run_as.uid}:${run_as.gid}`, safe, home]);
  return { run_as, repo, folders: foldersAs({ ...run_as, home }) };
}

function foldersAs(run_as: RunAs) {
  return openFolders({
    data_dir: join(folder.path, 'data'),
    safe_paths: () => [join(folder.path, 'safe')],
    worktree_root: () => join(folder.path, 'worktrees'),
    repo_roots: () => [],
    exec: directExec,
    env: process.env,
    run_as,
  });
}

test.runIf(as_root)('git and everything it runs has only the rights of the agents’ user', async () => {
  const witness = join(folder.path, 'safe/witness');
  const { run_as, repo, folders } = await withFilter(`id -u >> '${witness}'; cat`);
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

test.runIf(as_root)('a worker that an agent stops fails its job and is replaced', async () => {
  // The shell's parent is git, whose parent is the worker.
  const worker = `$(cut -d' ' -f4 /proc/$PPID/stat)`;
  const { repo, folders } = await withFilter(`kill -STOP ${worker}; cat`);
  await expect(
    folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null }),
  ).rejects.toThrow("a job in the agent's folder failed: the worker was stopped");
  expect((await folders.changes({ workdir: repo, base: null })).files).toEqual([]);
  await folders.close();
});

test.runIf(as_root)('git ends with a worker that an agent kills, before the next job begins', async () => {
  const witness = join(folder.path, 'safe/witness');
  const worker = `$(cut -d' ' -f4 /proc/$PPID/stat)`;
  const { repo, folders } = await withFilter(`echo $PPID >'${witness}'; kill -KILL ${worker}; sleep 600`);
  await expect(
    folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null }),
  ).rejects.toThrow("a job in the agent's folder failed");
  expect(readStat(Number(readFileSync(witness, 'utf8')))?.state ?? 'Z').toBe('Z');
  await folders.close();
});

test.runIf(as_root)('an agent that locks a repository does not delay work on its worktrees', async () => {
  const run_as = await findUser(directExec, 'nobody');
  const safe = join(folder.path, 'safe');
  const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
  execFileSync('chown', ['-R', `${run_as.uid}:${run_as.gid}`, safe]);
  const holder = spawn('flock', [join(repo, '.git'), 'sh', '-c', 'echo held; exec sleep 600'], {
    ...{ uid: run_as.uid, gid: run_as.gid },
    detached: true,
  });
  try {
    await once(holder.stdout, 'data');
    const folders = foldersAs(run_as);
    const made = await folders.createWorktree({
      ...{ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null },
    });
    expect(await folders.removeWorktree(made, { force: false })).toMatchObject({ removed: true });
    await folders.close();
  } finally {
    process.kill(-holder.pid!, 'SIGKILL');
  }
});

test.runIf(as_root)(
  'reports git’s message for a repository that the agents’ user may not write to',
  async () => {
    const safe = join(folder.path, 'safe');
    const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n' });
    const folders = foldersAs(await findUser(directExec, 'nobody'));
    await expect(
      folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null }),
    ).rejects.toMatchObject({ kind: 'invalid', message: expect.stringMatching(/^fatal: /) });
  },
);
