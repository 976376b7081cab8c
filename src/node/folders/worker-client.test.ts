import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, readAllStats } from '../../base/proc.ts';
import { makeRepository } from '../../testing/repository.ts';
import { sandboxMissing } from '../../testing/sandbox.ts';
import { findUser, type RunAs } from '../confinement/run-as.ts';
import { Sandbox } from '../confinement/sandbox.ts';
import { findCgroupParent } from '../processes/cgroup.ts';
import { directExec } from '../processes/exec.ts';
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

/** The operator's git configuration names the program. To make git run one, a repository would have to win a race. */
async function leaveBehind(run_as: RunAs | null, sandboxed: boolean): Promise<void> {
  const [home, safe, data_dir] = ['home', 'safe', 'data'].map((name) => join(base, name));
  const mark = `svc-left-behind-${process.pid}-${sandboxed}`;
  const witness = join(safe!, 'witness');
  const trees = join(base, 'trees');
  mkdirSync(trees);
  mkdirSync(home!);
  mkdirSync(data_dir!);
  const repo = makeRepository(join(safe!, 'repo'), {
    'a.txt': 'one\n',
    '.gitattributes': '* filter=leave\n',
  });
  const child = `echo $0 >"$1"; while sleep 0.2; do :; done`;
  const script = `#!/bin/sh\nsetsid env -i PATH="$PATH" sh -c '${child}' ${mark} '${witness}' >/dev/null 2>&1 </dev/null &\ncat\n`;
  writeFileSync(join(safe!, 'filter'), script, { mode: 0o755 });
  writeFileSync(join(home!, '.gitconfig'), `[filter "leave"]\n\tsmudge = ${safe}/filter\n`);
  if (run_as) execFileSync('chown', ['-R', `${run_as.uid}:${run_as.gid}`, safe!, home!]);
  const env = { ...process.env, HOME: home! };
  const repo_roots = () => [];
  const safe_paths = () => [safe!];
  const [bwrap, unshare] = ['/usr/bin/bwrap', '/usr/bin/unshare'];
  const sandbox = sandboxed
    ? new Sandbox({
        ...{ exec: directExec, bwrap, unshare, data_dir: data_dir!, run_as, env },
        ...{ hidden: [], readable: [], writable: safe_paths, repo_roots, worktree_roots: () => [trees] },
      })
    : null;
  const folders = openFolders({
    ...{ data_dir: data_dir!, safe_paths, repo_roots, exec: directExec, env, sandbox },
    worktree_root: () => trees,
    run_as: run_as && { ...run_as, home: home! },
  });
  const left = () => readAllStats().filter((stat) => commandLine(stat).includes(mark));
  try {
    await folders.createWorktree({ agent_id: 'agt_one', name: 'a', workdir: null, repo, ref: null });
    await expect.poll(() => existsSync(witness)).toBe(true);
    expect(left()).not.toEqual([]);
  } finally {
    await folders.close();
  }
  await expect.poll(left).toEqual([]);
}

test.runIf(sandboxMissing() === null && as_root)(
  'programs that a repository made git run end with the worker, in a sandbox',
  () => leaveBehind(null, true),
);

test.runIf(delegated && as_root)(
  'programs that a repository made git run end with another user’s worker, in its cgroup',
  async () => leaveBehind(await findUser(directExec, 'nobody'), false),
);
