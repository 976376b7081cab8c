/** Whether this machine can create the sandboxes that tests need. */
import { spawnSync } from 'node:child_process';

/** The reason why sandboxes are not possible; null if they are. */
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
