/** Opens the node of this machine as the configuration says: a plane's main node, or a remote node. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Config } from '../core/config.ts';
import { invalid } from '../core/problem.ts';
import { openAgentFolder } from '../node/confinement/agent-folder.ts';
import { findUser, type RunAs } from '../node/confinement/run-as.ts';
import { Sandbox } from '../node/confinement/sandbox.ts';
import { type LocalFolders, openFolders } from '../node/folders/folders.ts';
import { createRoot, type WorktreeRoots } from '../node/folders/worktree-roots.ts';
import { type LocalNode, openLocalNode } from '../node/node.ts';
import type { Exec } from '../node/processes/exec.ts';
import { Launcher } from '../node/processes/launcher-client.ts';
import { findTools } from '../node/processes/tools.ts';
import { ActorFiles } from '../node/sessions/actor-files.ts';
import type { Closing } from './closing.ts';
import { listOwnPrograms } from './own-programs.ts';
import { type ProtectedPaths, replaceablePath } from './run-as-paths.ts';
import { findReadableKeys, findUnreachable } from './run-as-reach.ts';
import { hiddenPaths, sandboxConflict, sandboxPaths } from './sandbox-paths.ts';

export interface OpenNodeOptions {
  id: string;
  /** False: the node only keeps sessions that have ended. Nothing that only running agents need is checked. */
  runs_agents: boolean;
  config: Config;
  data_dir: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  log: Logger;
  /** Called on every use, because the values can change while the service runs. */
  safe_paths(): readonly string[];
  repo_roots(): readonly string[];
  /** Null: requests must give a workdir as a path. */
  worktree_root(): string | null;
  /** Folders in which worktrees were created earlier. */
  roots: WorktreeRoots;
}

export interface OpenedNode {
  node: LocalNode;
  folders: LocalFolders;
  /** Null: agents cannot call the plane. */
  actor_files: ActorFiles | null;
  /** Warnings for the operator. */
  warnings: string[];
}

/** Adds everything that must be closed to `opened`. Throws `invalid_config`. */
export async function openNode(options: OpenNodeOptions, opened: Closing): Promise<OpenedNode> {
  const { id, runs_agents, config, data_dir, env, clock, log, worktree_root, roots } = options;
  const launcher = new Launcher();
  opened.push(() => launcher.close());
  const run_as_name = config.get('agents.run_as');
  const run_as = run_as_name === null ? null : await findUser(launcher, run_as_name);
  const root = worktree_root();
  const warnings = runs_agents ? await checkRunAs(options, launcher, run_as) : [];
  const private_folders = config.get('agents.sandbox') === 'bwrap';
  const actor_files = runs_agents
    ? await openActorFiles(config, { data_dir, run_as, env, private_folders }, warnings)
    : null;
  const sandbox = sandboxOf(config, {
    ...{ ...options, exec: launcher, run_as },
    worktree_roots: async () => {
      const root = worktree_root();
      if (root !== null) await createRoot(root, { traversable: run_as !== null });
      return [root ?? [], ...(await roots.outsideShared(options.safe_paths()))].flat();
    },
  });
  // Recorded so that worktrees here are found after the setting changes.
  if (root !== null) await roots.recordIfUsed(root, options.safe_paths());
  if (sandbox && runs_agents) warnings.push(...(await checkSandbox(options, sandbox, run_as)));
  const folders = openFolders({
    data_dir,
    safe_paths: options.safe_paths,
    worktree_root,
    roots,
    repo_roots: options.repo_roots,
    exec: launcher,
    env,
    run_as,
    sandbox,
  });
  opened.push(() => folders.close());
  const env_allow = config.get('agents.env_allow');
  const node = await openLocalNode({
    id,
    data_dir,
    clock,
    log,
    folders,
    launcher,
    run_as,
    sandbox,
    env,
    env_allow: env_allow.length > 0 ? env_allow : null,
    actor_files,
  });
  opened.push(() => node.close());
  const { sessions_live } = await node.health();
  if (sandbox && root !== null && sessions_live > 0 && !(await roots.wasUsed(root))) {
    warnings.push(
      `worktree.default_root ${root} is new: agents that already run can read worktrees there until they are restarted`,
    );
  }
  return { node, folders, actor_files, warnings };
}

/** Returns warnings about the user that agents run as. Throws `invalid_config`. */
async function checkRunAs(
  { config, env, log, worktree_root }: OpenNodeOptions,
  launcher: Launcher,
  run_as: RunAs | null,
): Promise<string[]> {
  const is_sandboxed = config.get('agents.sandbox') === 'bwrap';
  if (run_as === null) {
    if (!is_sandboxed) {
      log.info(
        'agents run as the user of this service and can read what it can; agents.run_as names another user',
      );
    }
    return [];
  }
  const exposed = await replaceablePath(launcher, run_as, protectedPaths(config, env));
  if (exposed) throw invalid(exposed, 'invalid_config');
  const root = worktree_root();
  const unreachable = root === null ? null : await findUnreachable(launcher, run_as, root);
  const keys = is_sandboxed ? null : await findReadableKeys(launcher, run_as);
  return [unreachable, keys].filter((each) => each !== null);
}

/** Returns warnings about the sandbox. Throws `invalid_config`. */
async function checkSandbox(
  { config, data_dir, env, roots, safe_paths, repo_roots, worktree_root }: OpenNodeOptions,
  sandbox: Sandbox,
  run_as: RunAs | null,
): Promise<string[]> {
  const warnings: string[] = [];
  const worktree_roots = [worktree_root() ?? [], await roots.inUse()].flat();
  const live = { safe_paths: safe_paths(), repo_roots: repo_roots(), worktree_roots };
  const conflict = await sandboxConflict(await sandboxPaths(config, env, live));
  if (conflict !== null) throw invalid(conflict, 'invalid_config');
  const why = await sandbox.problem();
  if (why !== null) warnings.push(`no agent can start: agents.sandbox does not work: ${why}`);
  warnings.push(...sandbox.gaps, ...(await sandbox.exposed()));
  await openAgentFolder('state', { data_dir, run_as, env }).catch((error: Error) => {
    warnings.push(`agents with a preset cannot start: ${error.message}`);
  });
  return warnings;
}

/** Null if agents cannot call the plane; adds the reason to `warnings` unless the configuration says so. */
async function openActorFiles(
  config: Config,
  options: Parameters<typeof ActorFiles.open>[0],
  warnings: string[],
): Promise<ActorFiles | null> {
  if (!config.get('internal_grpc.enabled')) return null;
  return ActorFiles.open(options).catch((error: Error) => {
    warnings.push(`agents cannot use svc actor: ${error.message}`);
    return null;
  });
}

/** Paths that the agents' user must not be able to change. */
export function protectedPaths(config: Config, env: NodeJS.ProcessEnv): ProtectedPaths {
  return {
    hidden: [config.get('data_dir'), ...hiddenPaths(config, env)],
    programs: listOwnPrograms(env),
  };
}

/** Null: agents run without a sandbox. */
function sandboxOf(
  config: Config,
  options: Pick<OpenNodeOptions, 'data_dir' | 'env' | 'safe_paths' | 'repo_roots'> & {
    exec: Exec;
    run_as: RunAs | null;
    worktree_roots(): Promise<readonly string[]>;
  },
): Sandbox | null {
  if (config.get('agents.sandbox') !== 'bwrap') return null;
  const { data_dir, env, exec, run_as, safe_paths, repo_roots, worktree_roots } = options;
  const { bwrap, unshare } = findTools();
  return new Sandbox({
    ...{ data_dir, env, exec, run_as, repo_roots, worktree_roots },
    ...{ bwrap, unshare },
    hidden: hiddenPaths(config, env),
    readable: config.get('agents.sandbox_read'),
    writable: () => [...safe_paths(), ...config.get('agents.sandbox_write')],
  });
}

/** The sandbox that a service with this configuration would use, without live settings. */
export function configuredSandbox(
  config: Config,
  env: NodeJS.ProcessEnv,
  exec: Exec,
  run_as: RunAs | null,
): Sandbox | null {
  return sandboxOf(config, {
    ...{ data_dir: config.get('data_dir'), env, exec, run_as },
    safe_paths: () => config.get('safe_paths'),
    repo_roots: () => config.get('worktree.repo_roots'),
    worktree_roots: async () => [config.get('worktree.default_root') ?? []].flat(),
  });
}
