/**
 * Determines which paths of this machine a sandbox hides from agents, and whether the rest of the configuration allows that.
 * A mount covers each hidden path. An agent that can write to a folder above it could rename that folder and move the file
 * out from under the mount, so such a configuration is rejected. A configuration is also rejected if agents could change
 * programs that the service or other users' agents run.
 */
import { isAbsolute, join, normalize } from 'node:path';
import { xdgFolder } from '../base/xdg.ts';
import type { Config } from '../core/config.ts';
import { everyStateFolder } from '../node/confinement/agent-folder.ts';
import { isInside, locate, outermost, stepsTo } from '../node/folders/paths.ts';
import { isInGitFolder } from '../node/folders/repository-link.ts';
import { pathFolders } from '../node/processes/tools.ts';
import { listOwnPrograms } from './own-programs.ts';

/** Paths that agents must not see, besides the data directory. They are absolute and need not exist. */
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
    // In this folder, `svc login` stores the tokens of the user who runs the service.
    home === undefined ? null : join(xdgFolder({ env, home }, 'XDG_CONFIG_HOME', '.config'), 'svc'),
    ...named,
  ].filter((path) => path !== null);
}

export interface SandboxPaths {
  hidden: readonly string[];
  /** What the service executes, including everything in these folders. */
  programs: readonly string[];
  /**
   * Folders of the PATH, in which all users' agents look for programs. A missing one counts too: agents that can
   * write to a folder above it could create it.
   */
  path_folders: readonly string[];
  /** Configured folders that agents can write to. */
  writable: readonly string[];
  /** Folders that may contain the repositories of agents' worktrees. */
  repositories: readonly string[];
}

/** Settings that can change while the service runs. */
interface LivePaths {
  safe_paths: readonly string[];
  repo_roots: readonly string[];
  worktree_roots: readonly string[];
}

/** Collects the paths that `sandboxConflict` checks. */
export async function sandboxPaths(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  live: LivePaths,
): Promise<SandboxPaths> {
  const { safe_paths, worktree_roots, repo_roots } = live;
  const data_dir = config.get('data_dir');
  const states = await everyStateFolder(data_dir);
  return {
    hidden: [...new Set([data_dir, ...hiddenPaths(config, env), ...states, ...worktree_roots])],
    programs: listOwnPrograms(env),
    path_folders: pathFolders(env.PATH),
    writable: [...safe_paths, ...config.get('agents.sandbox_write')],
    repositories: repo_roots,
  };
}

/** A path as configured, its real path, and every existing entry that resolving it passes through. */
interface ResolvedPath {
  path: string;
  real: string;
  entries: readonly string[];
}

/** Why a sandbox cannot protect these paths, as a message for the operator; null if it can. */
export async function sandboxConflict(paths: SandboxPaths): Promise<string | null> {
  const [hidden, programs, path_folders, writable, repositories] = await Promise.all(
    [paths.hidden, paths.programs, paths.path_folders, paths.writable, paths.repositories].map(resolvePaths),
  );
  return (
    movable(hidden!, writable!) ??
    changeable(programs!, path_folders!, writable!) ??
    redirectable(writable!) ??
    unusable(hidden!, repositories!) ??
    (await exposedByGit(hidden!))
  );
}

function movable(hidden: readonly ResolvedPath[], writable: readonly ResolvedPath[]): string | null {
  for (const one of hidden) {
    const above = writable.find((folder) => contains(folder, one));
    if (!above) continue;
    return (
      `agents.sandbox cannot hide ${one.path}, because agents may write to ${above.path} above it and could move it: ` +
      `take ${above.path} out of safe_paths and agents.sandbox_write, or move ${one.path} elsewhere`
    );
  }
  return null;
}

function changeable(
  programs: readonly ResolvedPath[],
  path_folders: readonly ResolvedPath[],
  writable: readonly ResolvedPath[],
): string | null {
  for (const folder of writable) {
    const remedy = `take ${folder.path} out of safe_paths and agents.sandbox_write`;
    const program = programs.find((one) => contains(folder, one) || isInside(one.real, folder.real));
    if (program) {
      return (
        `agents may write to ${folder.path} and so change ${program.path}, which the service runs: ` +
        `${remedy}, or install svc elsewhere`
      );
    }
    const on_path = path_folders.find((one) => contains(folder, one));
    if (on_path) {
      return (
        `agents may write to ${folder.path} and so put programs into ${on_path.path}, from which other users' agents run them: ` +
        `${remedy}, or take ${on_path.path} out of the PATH of the service`
      );
    }
  }
  return null;
}

function redirectable(writable: readonly ResolvedPath[]): string | null {
  const roots = outermost(writable.map(({ path }) => path));
  for (const { path, real } of writable.filter((folder) => roots.includes(folder.path))) {
    const around = writable.find(
      (other) => other.path !== path && other.real !== real && isInside(other.real, real),
    );
    if (around) {
      return (
        `${path} leads into ${around.path} through a link, which agents could redirect, because they may write there: ` +
        'configure the folder that it points to instead'
      );
    }
  }
  return null;
}

/**
 * Agents need to see a repository. If it were inside a hidden folder, showing it would expose part of that folder, such as the
 * worktrees of all agents.
 */
function unusable(hidden: readonly ResolvedPath[], repositories: readonly ResolvedPath[]): string | null {
  for (const root of repositories) {
    const around = hidden.find((one) => isInside(one.real, root.real));
    if (!around) continue;
    return (
      `agents.sandbox hides ${around.path} from agents, so they cannot use the repositories in ${root.path}: ` +
      `take ${root.path} out of worktree.repo_roots, or move ${around.path} elsewhere`
    );
  }
  return null;
}

/** An agent in a worktree sees the git folder of its repository and everything in it. */
async function exposedByGit(hidden: readonly ResolvedPath[]): Promise<string | null> {
  for (const { path, real } of hidden) {
    if (!(await isInGitFolder(real))) continue;
    return (
      `agents.sandbox cannot hide ${path}, because it is inside the git folder of a repository, which agents see: ` +
      `move ${path} elsewhere`
    );
  }
  return null;
}

/** Whether a path leads into, or through, a folder. */
function contains({ path, real }: ResolvedPath, one: ResolvedPath): boolean {
  return [one.path, one.real, ...one.entries].some((entry) => isInside(path, entry) || isInside(real, entry));
}

function resolvePaths(paths: readonly string[]): Promise<ResolvedPath[]> {
  return Promise.all(
    paths.map(async (named) => {
      const path = normalize(named).replace(/(?<=.)\/$/, '');
      const entries = (await stepsTo(named)).map(({ entry }) => entry);
      // A path that cannot be resolved is used unchanged.
      return { path, real: (await locate(named))?.path ?? path, entries };
    }),
  );
}
