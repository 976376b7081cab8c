/** Whether this machine can create the sandboxes that tests need, and how to get weaker ones. */
import { spawnSync } from 'node:child_process';
import { directExec, type Exec } from '../node/processes/exec.ts';

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

/** Refuses a pid namespace when the sandbox tries which namespaces it can create. */
export const noPidNamespace: Exec = {
  run: async (argv, options) => {
    const result = await directExec.run(argv, options);
    return argv.includes('--unshare-pid') ? { ...result, code: 1 } : result;
  },
};
