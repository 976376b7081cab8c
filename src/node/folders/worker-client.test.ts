import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, readAllStats } from '../../base/proc.ts';
import { makeRepository } from '../../testing/repository.ts';
import { noPidNamespace, sandboxMissing } from '../../testing/sandbox.ts';
import { findUser, type RunAs } from '../confinement/run-as.ts';
import { Sandbox } from '../confinement/sandbox.ts';
import { findCgroupParent } from '../processes/cgroup.ts';
import { directExec, type Exec } from '../processes/exec.ts';
import { openFolders } from './folders.ts';

const as_root = process.platform === 'linux' && process.getuid?.() === 0;
const delegated = (await findCgroupParent()) !== null;

let base: string;
beforeEach(async () => {
  // The usual folder for temporary files would be empty in a sandbox.
  base = await realpath(await mkdtemp('/srv/svc-worker-'));
  chmodSync(base, 0o755);
});
afterEach(() => rm(base, { recursive: true }));

/**
 * A repository whose checkout runs `filter` (a shell script), and folders in which it can be checked out. The operator's git
 * configuration names the program. To make git run one, a repository would have to win a race.
 */
function withFilter(filter: (safe: string) => string, run_as: RunAs | null, sandbox_exec: Exec | null) {
  const [home, safe, data_dir, trees] = ['home', 'safe', 'data', 'trees'].map((name) => join(base, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const folder of [home, data_dir, trees]) mkdirSync(folder);
  const repo = makeRepository(join(safe, 'repo'), { 'a.txt': 'one\n', '.gitattributes': '* filter=own\n' });
  writeFileSync(join(safe, 'filter'), `#!/bin/sh\n${filter(safe)}\ncat\n`, { mode: 0o755 });
  writeFileSync(join(home, '.gitconfig'), `[filter "own"]\n\tsmudge = ${safe}/filter\n`);
  if (run_as) execFileSync('chown', ['-R', `${run_as.uid}:${run_as.gid}`, safe, home]);
  const env = { ...process.env, HOME: home };
  const repo_roots = () => [];
  const safe_paths = () => [safe];
  const [bwrap, unshare] = ['/usr/bin/bwrap', '/usr/bin/unshare'];
  const sandbox = sandbox_exec
    ? new Sandbox({
        ...{ exec: sandbox_exec, bwrap, unshare, data_dir, run_as, env },
        ...{ hidden: [], readable: [], writable: safe_paths, repo_roots, worktree_roots: () => [trees] },
      })
    : null;
  const folders = openFolders({
    ...{ data_dir, safe_paths, repo_roots, exec: directExec, env, sandbox },
    worktree_root: () => trees,
    run_as: run_as && { ...run_as, home },
  });
  const checkOut = () =>
    folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null });
  return { folders, safe, checkOut };
}

async function leaveBehind(run_as: RunAs | null, sandboxed: boolean): Promise<void> {
  const mark = `svc-left-behind-${process.pid}-${sandboxed}`;
  const child = `echo $0 >"$1"; while sleep 0.2; do :; done`;
  const script = (safe: string) =>
    `setsid env -i PATH="$PATH" sh -c '${child}' ${mark} '${safe}/witness' >/dev/null 2>&1 </dev/null &`;
  const { folders, safe, checkOut } = withFilter(script, run_as, sandboxed ? directExec : null);
  const left = () => readAllStats().filter((stat) => commandLine(stat).includes(mark));
  try {
    await checkOut();
    await expect.poll(() => existsSync(join(safe, 'witness'))).toBe(true);
    expect(left()).not.toEqual([]);
  } finally {
    await folders.close();
  }
  await expect.poll(left).toEqual([]);
}

test.runIf(sandboxMissing() === null && as_root)(
  'a worker that an agent stops fails its job, also in a sandbox without a pid namespace',
  async () => {
    // The shell's parent is git, whose parent is the worker.
    const stop = () => `kill -STOP $(cut -d' ' -f4 /proc/$PPID/stat)`;
    const { folders, checkOut } = withFilter(stop, null, noPidNamespace);
    await expect(checkOut()).rejects.toThrow("a job in the agent's folder failed: the worker was stopped");
    await folders.close();
  },
);

test.runIf(sandboxMissing() === null && as_root)(
  'programs that a repository made git run end with the worker, in a sandbox',
  () => leaveBehind(null, true),
);

test.runIf(delegated && as_root)(
  'programs that a repository made git run end with another user’s worker, in its cgroup',
  async () => leaveBehind(await findUser(directExec, 'nobody'), false),
);
