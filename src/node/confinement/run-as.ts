/**
 * The local user that runs agents, and git in their folders, if the service is root and `agents.run_as` is set. This
 * module finds the user and builds the argv; `setpriv` changes the user.
 */
import { invalid } from '../../core/problem.ts';
import type { Exec } from '../processes/exec.ts';
import { systemTool } from '../processes/tools.ts';

export interface RunAs {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

/** Finds a user by name. Throws `invalid` if it does not exist, is root, or if this machine cannot change users. */
export async function findUser(exec: Exec, name: string): Promise<RunAs> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw invalid('agents.run_as needs Linux and a service that runs as root');
  }
  const result = await exec.run([systemTool('getent'), 'passwd', '--', name], {
    cwd: '/',
    env: { LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: 10_000,
  });
  const [found, , uid, gid, , home] = result.stdout.toString().split('\n', 1)[0]?.split(':') ?? [];
  if (result.code !== 0 || !found || !uid || !gid) throw invalid(`agents.run_as: no such user: ${name}`);
  if (Number(uid) === 0) throw invalid('agents.run_as must not be root');
  return { name: found, uid: Number(uid), gid: Number(gid), home: home || '/' };
}

/**
 * The argv that runs `argv` as `user`, without the service's privileges; unchanged if `user` is null. `groups`: `init`
 * keeps the user's groups; `clear` drops all groups, for a user that may no longer exist.
 */
export function asUser(
  argv: [string, ...string[]],
  user: Pick<RunAs, 'uid' | 'gid'> | null,
  groups: 'init' | 'clear' = 'init',
): [string, ...string[]] {
  if (!user) return argv;
  return [
    systemTool('setpriv'),
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    `--${groups}-groups`,
    '--inh-caps=-all',
    '--no-new-privs',
    '--',
    ...argv,
  ];
}
