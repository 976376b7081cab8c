/** Separate networks for tests, in namespaces: the host's addresses and names do not change. Needs root and iproute2. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

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

/**
 * Runs a script in new namespaces, with `input` as JSON in its first argument, and returns what it prints, which
 * must be JSON. Ends everything that the script started, even when `signal` aborts it. Rejects with its error output.
 */
export async function runUnshared<Output>(
  script: URL,
  input?: unknown,
  signal?: AbortSignal,
): Promise<Output> {
  const run = `exec "${process.execPath}" "${fileURLToPath(script)}" '${JSON.stringify(input ?? null)}'`;
  // Everything in a pid namespace ends with its first process.
  const [command, argv] = unshared(run, ['--pid', '--fork', '--kill-child', '--mount-proc']);
  const child = spawn(command, argv, {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal && { signal, killSignal: 'SIGKILL' }),
  });
  const [[code], output, stderr] = await Promise.all([
    once(child, 'close'),
    text(child.stdout),
    text(child.stderr),
  ]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(output);
}
