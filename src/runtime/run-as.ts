/**
 * The local user that agents, and git on their folders, run as when the service itself is root and told to drop them
 * (`agents.run_as`). It only finds the user and words the argv; the dropping is `setpriv`'s.
 */
import { invalid } from '../domain/problem.ts';
import type { Exec } from './exec.ts';

export interface RunAs {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

/** Finds a user by name. Throws `invalid` when there is none, when it is root, or when this machine cannot do it. */
export async function findUser(exec: Exec, name: string): Promise<RunAs> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw invalid('agents.run_as needs Linux and a service that runs as root');
  }
  const result = await exec.run(['getent', 'passwd', '--', name], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: 10_000,
  });
  const [found, , uid, gid, , home] = result.stdout.toString().split('\n', 1)[0]?.split(':') ?? [];
  if (result.code !== 0 || !found || !uid || !gid) throw invalid(`agents.run_as: no such user: ${name}`);
  if (Number(uid) === 0) throw invalid('agents.run_as must not be root');
  return { name: found, uid: Number(uid), gid: Number(gid), home: home || '/' };
}

/** The argv that runs `argv` as `user`, without any privilege of ours; unchanged without a user. */
export function asUser(argv: [string, ...string[]], user: RunAs | null): [string, ...string[]] {
  if (!user) return argv;
  return [
    'setpriv',
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    '--init-groups',
    '--inh-caps=-all',
    '--no-new-privs',
    '--',
    ...argv,
  ];
}
