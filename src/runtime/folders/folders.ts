/** The `Folders` of the machine that this process runs on: safe workdirs, worktrees, changes. */
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedQueue } from '../../base/async.ts';
import type { Folders, ResolvedWorkdir } from '../../domain/node.ts';
import { invalid, problems } from '../../domain/problem.ts';
import type { Exec } from '../exec.ts';
import type { RunAs } from '../run-as.ts';
import type { Sandbox } from '../sandbox.ts';
import { Git } from './git.ts';
import type { JobContext } from './jobs.ts';
import { isInside, locateInside, outermost, pathProblem, realRoots, requireFolder } from './paths.ts';
import { FolderWorkers, inThisProcess } from './worker-client.ts';
import { createWorktree, removeWorktree, type WorktreeOptions } from './worktrees.ts';

/** Paths are read at each call: they can change while the service runs. */
export interface FoldersOptions {
  data_dir: string;
  safe_paths: () => readonly string[];
  /** Where worktrees without a path of their own go; null: nowhere. It is always safe. */
  worktree_root: () => string | null;
  /** Where repositories may lie beside the safe paths. */
  repo_roots: () => readonly string[];
  exec: Exec;
  /** The service's environment. */
  env: Record<string, string | undefined>;
  run_as: RunAs | null;
  /** With one, or with `run_as`, everything in agents' folders is done by workers that have no more rights than agents. */
  sandbox?: Sandbox | null;
}

export interface LocalFolders extends Folders {
  /** Throws, as a Problem, why a folder cannot be the base of derived workdirs. It is made with its first worktree. */
  checkRoot(root: string): Promise<void>;
  /** Ends the workers. */
  close(): Promise<void>;
}

export function openFolders(options: FoldersOptions): LocalFolders {
  const { data_dir, exec, env, run_as, sandbox = null } = options;
  const made_roots = () => {
    const root = options.worktree_root();
    return [join(data_dir, 'worktrees'), ...(root === null ? [] : [root])];
  };
  const workdir_roots = () => outermost([...options.safe_paths(), ...made_roots()]);
  const repo_roots = () => realRoots(outermost([...workdir_roots(), ...options.repo_roots()]));
  const context: JobContext = {
    exec,
    git: new Git({ exec, env, run_as: null, roots: repo_roots }),
    repo_roots,
    confined: false,
  };
  const workers =
    run_as === null && sandbox === null ? null : new FolderWorkers({ env, run_as, sandbox, repo_roots });
  const run = workers ? workers.run : inThisProcess(context);
  const worktrees: WorktreeOptions = {
    run,
    run_as,
    sandboxed: sandbox !== null,
    queue: new KeyedQueue(),
    worktree_root: options.worktree_root,
    made_roots,
    workdir_roots,
    repo_roots,
  };

  const shared = sharing();
  const resolve = async (workdir: string): Promise<ResolvedWorkdir> => {
    if (workdir === '') throw problems.workdirRequired();
    const problem = pathProblem('workdir', workdir);
    if (problem) throw problem;
    const located = await locateInside(workdir, workdir_roots(), problems.workdirNotSafe);
    await requireFolder('workdir', located);
    const { path } = located;
    const made = (await realRoots(made_roots())).filter((root) => isInside(root, path));
    // Each worktree is one agent's: no link of another agent leads there, and what holds them all is nobody's.
    if (made.includes(path) || (made.length > 0 && workdir.replace(/\/+$/, '') !== path)) {
      throw problems.workdirNotSafe();
    }
    return { path, below_worktree_root: made.length > 0 };
  };

  const checkRoot = async (root: string): Promise<void> => {
    const problem = pathProblem('default_worktree_root', root);
    if (problem) throw problem;
    const located = await locateInside(root, workdir_roots(), problems.workdirNotSafe);
    const above = located.missing.length;
    const there = join(located.path, ...Array.from({ length: above }, () => '..'));
    await access(there, constants.W_OK | constants.X_OK).catch(() => {
      throw invalid(`default_worktree_root: ${there} cannot be written to`, 'worktree_root_not_writable');
    });
  };

  return {
    resolve,
    checkRoot,
    createWorktree: (request) => createWorktree(worktrees, request),
    removeWorktree: (worktree, { force }) => removeWorktree(worktrees, worktree, force),
    changes: (request) =>
      shared(`list ${JSON.stringify([request.workdir, request.base])}`, async () => {
        const { path: workdir } = await resolve(request.workdir);
        return run({ kind: 'look', workdir }, 'changes', { ...request, workdir });
      }),
    change: (request, path) =>
      shared(`one ${JSON.stringify([request.workdir, request.base, path])}`, async () => {
        const { path: workdir } = await resolve(request.workdir);
        return run({ kind: 'look', workdir }, 'change', { ...request, workdir, path });
      }),
    files: (workdir, words) =>
      shared(`files ${JSON.stringify([workdir, words])}`, async () => {
        const { path } = await resolve(workdir);
        return run({ kind: 'look', workdir: path }, 'files', { workdir: path, words });
      }),
    close: async () => workers?.close(),
  };
}

/** Answers equal questions that are asked while the first is being worked on all at once: git costs processes. */
function sharing(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const working = new Map<string, Promise<unknown>>();
  return <T>(key: string, work: () => Promise<T>) => {
    const under_way = working.get(key);
    if (under_way !== undefined) return under_way as Promise<T>;
    const result = work().finally(() => working.delete(key));
    working.set(key, result);
    return result;
  };
}
