/**
 * Deletes folders that agents write to, with the rights of the agents' user, so that a link in place of a folder is
 * harmless.
 */
import { lstat, rmdir } from 'node:fs/promises';
import { limits } from '../../base/limits.ts';
import { asUser, type RunAs } from '../confinement/run-as.ts';
import { firstError } from '../folders/git.ts';
import type { Exec, ExecResult } from './exec.ts';
import { systemTool } from './tools.ts';

interface RemoveOptions {
  exec: Exec;
  /** The owner of the folder; null: the service's own user. */
  run_as: Pick<RunAs, 'uid' | 'gid'> | null;
}

/**
 * Deletes a folder with its contents. Uses `rm`, which holds folders open while it descends. Returns null, or the
 * reason why something could not be removed. Idempotent.
 */
export async function removeTree({ exec, run_as }: RemoveOptions, path: string): Promise<string | null> {
  const run = (program: string, ...args: string[]): Promise<ExecResult> =>
    exec.run(asUser([systemTool(program), ...args, '--', path], run_as, 'clear'), {
      cwd: '/',
      env: { LC_ALL: 'C' },
      output_bytes_max: 4_096,
      timeout_ms: limits.git_checkout_timeout_ms,
    });
  const isGone = async () => {
    // The agents' user can empty its folder, but cannot remove the folder from a folder of the service.
    if (run_as) await rmdir(path).catch(() => {});
    return (await lstat(path).catch(() => null)) === null;
  };
  let result = await run('rm', '-rf');
  if (await isGone()) return null;
  // Only root can empty a folder that its owner cannot enter.
  await run('chmod', '-R', 'u+rwX');
  result = await run('rm', '-rf');
  return (await isGone()) ? null : firstError(result, 'rm');
}
