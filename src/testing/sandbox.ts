/** Whether this machine can make the sandboxes that tests need. */
import { spawnSync } from 'node:child_process';

/** Why not; null when it can. */
export function sandboxMissing(): string | null {
  const { error, status, stderr } = spawnSync('bwrap', [
    '--unshare-user',
    '--ro-bind',
    '/',
    '/',
    '/bin/true',
  ]);
  if (error) return 'bwrap is not installed';
  return status === 0 ? null : `bwrap cannot make namespaces: ${stderr.toString().trim()}`;
}
