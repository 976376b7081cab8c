/**
 * Which paths of this machine a sandbox keeps from agents, and whether the rest of the configuration lets it. A hidden
 * path is covered by a mount. An agent that may write to a folder above could rename that folder, and with it take the
 * file out from under the cover, so such a configuration is refused.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { xdg } from '../base/xdg.ts';
import type { Config } from '../contract/config.ts';
import { isInside, locate, outermost } from '../runtime/folders/paths.ts';

/** What agents must not see beside the data directory: absolute paths, which need not exist. */
export function hiddenPaths(config: Config, env: Readonly<Record<string, string | undefined>>): string[] {
  const named = Object.entries(env).flatMap(([name, value]) =>
    /^SVC_.*_FILE$/.test(name) && value && isAbsolute(value) ? [value] : [],
  );
  const home = env.HOME;
  return [
    config.file,
    config.get('internal_grpc.security.cert_dir'),
    config.get('server.tls.key'),
    config.get('logging.output'),
    // Where `svc login` keeps the tokens of whoever runs the service.
    home === undefined ? null : join(xdg({ env, home }, 'XDG_CONFIG_HOME', '.config'), 'svc'),
    ...named,
  ].filter((path) => path !== null);
}

export interface SandboxPaths {
  hidden: readonly string[];
  /** Configured folders that agents may write to. */
  writable: readonly string[];
}

/** Those of a configuration; `live`: what may be set while the service runs. */
export function sandboxPaths(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  live: { safe_paths: readonly string[]; worktree_root: string | null },
): SandboxPaths {
  const { safe_paths, worktree_root } = live;
  return {
    hidden: [
      config.get('data_dir'),
      ...hiddenPaths(config, env),
      ...(worktree_root === null ? [] : [worktree_root]),
    ],
    writable: [...safe_paths, ...config.get('agents.sandbox_write')],
  };
}

/** Why a sandbox cannot protect what it hides with these paths, in words for the operator; null when it can. */
export async function sandboxConflict({ hidden, writable }: SandboxPaths): Promise<string | null> {
  const folders = await Promise.all(writable.map(async (path) => ({ path, real: await realOf(path) })));
  for (const path of hidden) {
    const real = await realOf(path);
    const above = folders.find((folder) =>
      [path, real].some((one) => [folder.path, folder.real].some((root) => isInside(root, one))),
    );
    if (above) {
      return (
        `agents.sandbox cannot hide ${path}, because agents may write to ${above.path} above it and could move it: ` +
        `take ${above.path} out of safe_paths and agents.sandbox_write, or move ${path} elsewhere`
      );
    }
  }
  const roots = outermost(writable);
  for (const { path, real } of folders.filter((folder) => roots.includes(folder.path))) {
    const around = folders.find(
      (other) => other.path !== path && other.real !== real && isInside(other.real, real),
    );
    if (around) {
      return (
        `agents may write to ${around.path} and so decide where ${path} leads, which is a link into it: ` +
        'name the folder itself'
      );
    }
  }
  return null;
}

/** Through links, as far as the path exists; a path that cannot be resolved is taken as it is. */
async function realOf(path: string): Promise<string> {
  return (await locate(path))?.path ?? dirname(join(path, 'x'));
}
