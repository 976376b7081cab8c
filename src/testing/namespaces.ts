/** Separate networks for tests, in namespaces: the host's addresses and names do not change. Needs root and iproute2. */
import { spawnSync } from 'node:child_process';

const UNSHARE = ['--net', '--mount', '--propagation', 'private'];
const OWN_NAMES = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up';

/** A command that runs a shell script in new namespaces, in which `ip netns` can create further networks. */
export function unshared(script: string, more: readonly string[] = []): [string, string[]] {
  return ['unshare', [...UNSHARE, ...more, 'sh', '-c', `${OWN_NAMES} && ${script}`]];
}

/** Whether this machine allows them. */
export function hasNamespaces(): boolean {
  return process.platform === 'linux' && spawnSync(...unshared('ip netns add probe')).status === 0;
}
