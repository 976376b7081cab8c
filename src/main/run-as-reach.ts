/**
 * Whether the user that agents run as can get to the folder that worktrees are made in. The data directory is closed to
 * everybody else, so with `agents.run_as` the default place is out of reach, and that is better said at the start than
 * by the first agent.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { limits } from '../base/limits.ts';
import type { Exec } from '../runtime/exec.ts';
import { asUser, type RunAs } from '../runtime/run-as.ts';

/** A warning in words, or null when the user may pass. */
export async function outOfReach(exec: Exec, user: RunAs, worktree_root: string): Promise<string | null> {
  // What does not exist yet is made by the service: its nearest folder decides.
  let folder = worktree_root;
  while (folder !== dirname(folder) && (await stat(folder).catch(() => null)) === null)
    folder = dirname(folder);
  const { code } = await exec.run(asUser(['test', '-x', folder], user), {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
    output_bytes_max: 4_096,
    timeout_ms: limits.doctor_wait_ms,
  });
  return code === 0
    ? null
    : `agents run as ${user.name}, who cannot enter ${worktree_root}: set worktree.default_root to a folder that this ` +
        'user can enter, or give every agent its workdir';
}
