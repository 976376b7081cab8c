import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

/** Arguments: the modules and the folder of the test. Uses up all descriptors while a worker has a job. */
const STARVING = `
  import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
  import { join } from 'node:path';
  import { setTimeout } from 'node:timers/promises';
  const [modules, base] = process.argv.slice(1);
  const { directExec } = await import(join(modules, 'processes/exec.ts'));
  const { findUser } = await import(join(modules, 'confinement/run-as.ts'));
  const { openFolders } = await import(join(modules, 'folders/folders.ts'));
  const { limits } = await import(join(modules, 'limits.ts'));
  const [safe, trees, home] = ['safe', 'trees', 'home'].map((name) => join(base, name));
  const folders = openFolders({
    data_dir: join(base, 'data'),
    safe_paths: () => [safe],
    repo_roots: () => [],
    exec: directExec,
    env: { ...process.env, HOME: home },
    worktree_root: () => trees,
    run_as: { ...(await findUser(directExec, 'nobody')), home },
  });
  const request = { agent_id: 'agt_one', name: 'a', workdir: null, repo: join(safe, 'repo'), ref: null };
  const made = folders.createWorktree(request);
  while (!existsSync(join(safe, 'begun'))) await setTimeout(10);
  const held = [];
  const starve = () => {
    try {
      for (;;) held.push(openSync('/dev/null', 'r'));
    } catch {}
  };
  for (let ms = 0; ms < limits.folder_worker_check_ms * 1.5; ms += 50) {
    starve();
    await setTimeout(50);
  }
  for (const fd of held) closeSync(fd);
  writeFileSync(join(safe, 'go'), '');
  const { workdir } = await made;
  console.log(workdir);
  await folders.close();
`;

test.runIf(as_root)('a service without free descriptors continues with the jobs of its workers', async () => {
  const run_as = await findUser(directExec, 'nobody');
  const filter = (safe: string) =>
    `cd ${safe}; touch begun; while [ -e begun ] && [ ! -e go ]; do sleep 0.05; done`;
  const { folders } = withFilter(filter, run_as, null);
  await folders.close();
  const modules = fileURLToPath(new URL('..', import.meta.url));
  const node = [process.execPath, '--input-type=module', '-e', STARVING, modules, base];
  const said = execFileSync('/bin/sh', ['-c', 'ulimit -n 256; exec "$@"', 'sh', ...node], {
    encoding: 'utf8',
  });
  expect(said.trim()).toBe(join(base, 'trees', 'a-agt_one'));
});
