/**
 * Checks whether the agents' user can reach the folder for worktrees, and whether it can reach keys that it should not. The
 * data directory is closed to all other users, so with `agents.run_as` the default folder is unreachable. The checks run at
 * startup, so that the first agent does not fail.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { limits } from '../base/limits.ts';
import { asUser, type RunAs } from '../node/confinement/run-as.ts';
import type { Exec } from '../node/processes/exec.ts';
import { systemTool } from '../node/processes/tools.ts';

/** A warning message, or null if the user has access. */
export async function findUnreachable(
  exec: Exec,
  user: RunAs,
  worktree_root: string,
): Promise<string | null> {
  // The service creates missing folders, so the nearest existing folder decides.
  let folder = worktree_root;
  while (folder !== dirname(folder) && (await stat(folder).catch(() => null)) === null)
    folder = dirname(folder);
  const { code } = await exec.run(asUser([systemTool('test'), '-x', folder], user), {
    cwd: '/',
    env: { LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: limits.doctor_wait_ms,
  });
  return code === 0
    ? null
    : `agents run as ${user.name}, who cannot enter ${worktree_root}: set worktree.default_root to a folder that this ` +
        'user can enter, or give every agent its workdir';
}

/**
 * A warning if agents would have access to the service's keys. Changing the user id does not change the session keyring,
 * which belongs to the login that started the service. In the sandbox, these system calls are blocked.
 */
export async function findReadableKeys(exec: Exec, user: RunAs): Promise<string | null> {
  const { code, stdout } = await exec.run(asUser([systemTool('cat'), '/proc/keys'], user), {
    cwd: '/',
    env: { LC_ALL: 'C' },
    output_bytes_max: limits.env_value_chars_max,
    timeout_ms: limits.doctor_wait_ms,
  });
  // id flags usage timeout permissions uid gid type description
  const lines = stdout
    .toString()
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const keys = lines.filter(
    ([, , , , , uid, , type]) => type !== undefined && type !== 'keyring' && uid !== String(user.uid),
  );
  if (code !== 0 || keys.length === 0) return null;
  return (
    `agents run as ${user.name}, but in the session keyring in which svc was started, with ${keys.length} keys of others: ` +
    'start svc with systemd or with "keyctl session - svc serve", or set agents.sandbox'
  );
}
