/** Deletes folders that agents write to, as the agents' user: a folder that is swapped for a link leads nowhere. */
import { lstat, rmdir } from 'node:fs/promises';
import { limits } from '../base/limits.ts';
import type { Exec } from './exec.ts';
import { complaint } from './folders/git.ts';
import { asUser, type RunAs } from './run-as.ts';

export interface RemoveOptions {
  exec: Exec;
  env: Readonly<Record<string, string | undefined>>;
  run_as: RunAs | null;
}

/** By `rm`, because it holds folders open on its way down. Answers null, or why something of it is still there. */
export async function removeTree({ exec, env, run_as }: RemoveOptions, path: string): Promise<string | null> {
  const result = await exec.run(asUser(['rm', '-rf', '--', path], run_as), {
    cwd: '/',
    env: { PATH: env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: limits.git_checkout_timeout_ms,
  });
  // The agents' user may empty its folder, but not take it out of a folder of ours.
  if (run_as) await rmdir(path).catch(() => {});
  return (await lstat(path).catch(() => null)) && complaint(result, 'rm');
}
