/** The runtime of this machine, wired from the configuration: what a plane has as its Main Node and a node serves. */
import type { Clock } from '../base/clock.ts';
import { type LogFile, type Logger, openLog } from '../base/log.ts';
import type { Config } from '../contract/config.ts';
import { invalid } from '../domain/problem.ts';
import { ActorFiles } from '../runtime/actor-files.ts';
import type { Exec } from '../runtime/exec.ts';
import { type LocalFolders, openFolders } from '../runtime/folders/folders.ts';
import { Launcher } from '../runtime/launcher-client.ts';
import { type LocalNode, openLocalNode } from '../runtime/node.ts';
import { findUser, type RunAs } from '../runtime/run-as.ts';
import { Sandbox } from '../runtime/sandbox.ts';
import { findTools } from '../runtime/tools.ts';
import type { Closing } from './closing.ts';
import { outOfReach } from './run-as-reach.ts';
import { hiddenPaths, sandboxConflict, sandboxPaths } from './sandbox-paths.ts';

export interface MachineOptions {
  id: string;
  config: Config;
  data_dir: string;
  env: NodeJS.ProcessEnv;
  clock: Clock;
  log: Logger;
  /** Read at each use: they can change while the service runs. */
  safe_paths(): readonly string[];
  repo_roots(): readonly string[];
  /** Null: derived workdirs need a path. */
  worktree_root(): string | null;
}

/** Answers the node and what the operator should know of it. Pushes onto `opened` what has to be closed. */
export async function openMachine(
  options: MachineOptions,
  opened: Closing,
): Promise<{ node: LocalNode; folders: LocalFolders; actor_files: ActorFiles | null; warnings: string[] }> {
  const { id, config, data_dir, env, clock, log, worktree_root } = options;
  const launcher = new Launcher();
  opened.push(() => launcher.close());
  const run_as_name = config.get('agents.run_as');
  const run_as = run_as_name === null ? null : await findUser(launcher, run_as_name);
  if (run_as === null && config.get('agents.sandbox') !== 'bwrap') {
    log.info(
      'agents run as the user of this service and can read what it can; agents.run_as names another user',
    );
  }
  const root = worktree_root();
  const unreachable = run_as && root !== null ? await outOfReach(launcher, run_as, root) : null;
  const warnings = unreachable ? [unreachable] : [];
  const own_folders = config.get('agents.sandbox') === 'bwrap';
  let actor_files: ActorFiles | null = null;
  if (config.get('internal_grpc.enabled')) {
    actor_files = await ActorFiles.open({ data_dir, run_as, env, own_folders }).catch((error: Error) => {
      warnings.push(`agents cannot use svc actor: ${error.message}`);
      return null;
    });
  }
  const sandbox = sandboxOf(config, { ...options, exec: launcher, run_as });
  if (sandbox) {
    const live = { safe_paths: options.safe_paths(), worktree_root: worktree_root() };
    const conflict = await sandboxConflict(sandboxPaths(config, env, live));
    if (conflict !== null) throw invalid(conflict, 'invalid_config');
    const why = await sandbox.problem();
    if (why !== null) warnings.push(`no agent is started: agents.sandbox cannot be kept: ${why}`);
    warnings.push(...sandbox.gaps);
  }
  const folders = openFolders({
    data_dir,
    safe_paths: options.safe_paths,
    worktree_root,
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
  return { node, folders, actor_files, warnings };
}

/** Null: agents run without one. */
function sandboxOf(
  config: Config,
  options: Pick<MachineOptions, 'data_dir' | 'env' | 'safe_paths' | 'repo_roots' | 'worktree_root'> & {
    exec: Exec;
    run_as: RunAs | null;
  },
): Sandbox | null {
  if (config.get('agents.sandbox') !== 'bwrap') return null;
  const { data_dir, env, exec, run_as, safe_paths, repo_roots, worktree_root } = options;
  return new Sandbox({
    ...{ data_dir, env, exec, run_as, repo_roots, worktree_root },
    bwrap: findTools().bwrap,
    hidden: hiddenPaths(config, env),
    readable: config.get('agents.sandbox_read'),
    writable: () => [...safe_paths(), ...config.get('agents.sandbox_write')],
  });
}

/** The one that a service with this configuration would have, without its live settings. */
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
    worktree_root: () => config.get('worktree.default_root'),
  });
}

export function openLogOf(config: Config): LogFile {
  const output = config.get('logging.output');
  try {
    return openLog({ level: config.get('logging.level'), format: config.get('logging.format'), output });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw invalid(`logging.output ${output} cannot be opened: ${code ?? message}`, 'invalid_config');
  }
}
