/**
 * Makes and removes the workdirs of `create_worktree` agents: a git worktree on a branch of its own, or an empty folder.
 * Making one is idempotent: after a crash in the middle the same request finds, or repairs, what is there. Removing one
 * never throws away work that exists nowhere else, unless told to. The steps are jobs; this file orders them.
 */
import { rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { KeyedQueue } from '../../base/async.ts';
import { limits } from '../../base/limits.ts';
import type { Worktree, WorktreeRequest } from '../../domain/node.ts';
import { invalid, Problem, problems } from '../../domain/problem.ts';
import { holdFolder } from '../held-folder.ts';
import type { RunAs } from '../run-as.ts';
import { mustBeEmpty } from './jobs.ts';
import { branchName, folderName, isOurBranch } from './names.ts';
import {
  isInside,
  type Located,
  locateInside,
  makeFolders,
  pathProblem,
  realRoots,
  requireFolder,
} from './paths.ts';
import type { Repository } from './repository.ts';
import type { RunJob } from './worker-client.ts';

export interface WorktreeOptions {
  run: RunJob;
  run_as: RunAs | null;
  /** Agents see nothing below `made_roots` but what each was given. */
  sandboxed: boolean;
  /** One git command that writes at a time, per repository. */
  queue: KeyedQueue;
  worktree_root: () => string | null;
  /** Folders that hold nothing but worktrees, each made by this service for one agent. */
  made_roots: () => string[];
  /** Folders that workdirs may lie in. */
  workdir_roots: () => string[];
  /** Real folders that `worktree_repo` may lie in. */
  repo_roots: () => Promise<string[]>;
}

export async function createWorktree(options: WorktreeOptions, request: WorktreeRequest): Promise<Worktree> {
  const name = folderName(request.name, request.agent_id);
  if (request.repo === null) {
    const target = await locateTarget(options, request, name);
    await makeFolder(options, target, request.workdir !== null);
    return { workdir: target.path, repo: null, branch: null, base: null };
  }
  checkRef(request.ref);
  const repository = await locateRepository(options, request.repo);
  const target = await locateTarget(options, request, name);
  return options.queue.run(repository.common_dir, () =>
    addWorktree(options, repository, target, name, request.ref),
  );
}

async function locateTarget(
  options: WorktreeOptions,
  request: WorktreeRequest,
  name: string,
): Promise<Located> {
  const root = request.root ?? options.worktree_root();
  if (request.workdir === null || request.workdir === '') {
    if (root === null) throw problems.workdirRequired();
    const wrong = pathProblem('default_worktree_root', root);
    if (wrong) throw wrong;
    return locateInside(join(root, name), options.workdir_roots(), problems.workdirNotSafe);
  }
  const problem = pathProblem('workdir', request.workdir);
  if (problem) throw problem;
  const target = await locateInside(request.workdir, options.workdir_roots(), problems.workdirNotSafe);
  // Deeper down lie the worktrees of others.
  for (const made of await realRoots(options.made_roots())) {
    if (isInside(made, target.path) && dirname(target.path) !== made) throw problems.workdirNotSafe();
  }
  if (root === null) await requireFolder('workdir', target);
  return target;
}

async function locateRepository(options: WorktreeOptions, path: string): Promise<Repository> {
  const problem = pathProblem('worktree_repo', path);
  if (problem) throw problem;
  const roots = await options.repo_roots();
  const located = await locateInside(path, roots, problems.repoNotSafe);
  await requireFolder('worktree_repo', located);
  return openRepository(options, located.path);
}

/** What a job answers is no more to be believed than the repository. */
async function openRepository(options: WorktreeOptions, path: string): Promise<Repository> {
  const { common_dir } = await options.run({ kind: 'look', workdir: path }, 'openRepository', { path });
  const roots = await options.repo_roots();
  if (!roots.some((root) => isInside(root, common_dir))) throw problems.repoNotSafe();
  return { path, common_dir };
}

function checkRef(ref: string | null): void {
  if (ref === null) return;
  if (ref === '' || ref.startsWith('-') || /[\x00-\x1f\x7f]/.test(ref) || ref.length > limits.ref_chars_max) {
    throw invalid('worktree_ref is not a valid ref', 'worktree_ref_invalid');
  }
}

/**
 * Makes the folder; one that exists must be empty with `empty` (else its name is ours alone, and this a second try). Where
 * agents cannot change what a path means the service makes it, and gives it away; elsewhere that is a job like others.
 */
async function makeFolder(options: WorktreeOptions, target: Located, empty: boolean): Promise<string | null> {
  const { run, run_as } = options;
  const mode = run_as ? 0o755 : 0o700;
  if (await isOurs(options, dirname(target.path))) {
    const made = await makeFolders(target, { mode, ...(run_as && { owner: run_as }) });
    if (empty) await mustBeEmpty(target.path);
    return made;
  }
  return run({ kind: 'records', common_dir: null, workdir: null }, 'makeFolder', {
    located: target,
    mode,
    empty,
  });
}

/** Whether no agent can rename, replace or add anything in a folder, nor in those above it; it may still be missing. */
async function isOurs({ run_as, sandboxed, made_roots }: WorktreeOptions, folder: string): Promise<boolean> {
  if (!run_as) return !sandboxed || (await realRoots(made_roots())).includes(folder);
  for (let path = folder; ; path = dirname(path)) {
    try {
      const held = await holdFolder(path);
      const ours = held.isClosedTo({ but: process.getuid!() });
      await held.close();
      return ours;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return false;
    }
  }
}

async function isThere(folder: string): Promise<boolean> {
  const held = await holdFolder(folder).catch(() => null);
  await held?.close();
  return held !== null;
}

async function addWorktree(
  options: WorktreeOptions,
  repository: Repository,
  target: Located,
  name: string,
  ref: string | null,
  again = true,
): Promise<Worktree> {
  const { run } = options;
  const workdir = target.path;
  const branch = branchName(name);
  const place = { repository, workdir, branch };
  const answer = (base: string): Worktree => ({ workdir, repo: repository.path, branch, base });

  const before = await records(options, repository, workdir);
  const { made, ...start } = await run(before, 'prepareWorktree', { ...place, ref });
  if (made) return answer(start.base);

  const fresh = await locateInside(workdir, options.workdir_roots(), problems.workdirNotSafe);
  const folder = await makeFolder(options, fresh, true);
  const view = await records(options, repository, workdir);
  try {
    await run(view, 'linkWorktree', { ...place, ...start });
    await run({ kind: 'fill', workdir }, 'fillWorktree', { repository, workdir });
    await run(view, 'finishWorktree', { repository, workdir });
    return answer(start.base);
  } catch (error) {
    const { branched } = await run(view, 'undoWorktree', { ...place, ...start });
    if (folder !== null) await removeOurs(options, workdir);
    // A killed launcher runs what it was asked a second time, and the branch of the first is in the way of the second.
    const twice = branched && error instanceof Problem && error.kind === 'invalid';
    if (twice && again) return addWorktree(options, repository, target, name, ref, false);
    throw error;
  }
}

/** What a job sees that writes a repository's records of worktrees; the folder, where it lies apart from safe paths. */
async function records(options: WorktreeOptions, { common_dir }: Repository, workdir: string) {
  const apart = options.sandboxed && (await isOurs(options, dirname(workdir))) && (await isThere(workdir));
  return { kind: 'records', common_dir, workdir: apart ? workdir : null } as const;
}

/** Takes away an empty folder that lies where only the service may. */
async function removeOurs(options: WorktreeOptions, workdir: string): Promise<void> {
  if (!(await isOurs(options, dirname(workdir)))) return;
  const parent = await holdFolder(dirname(workdir)).catch(() => null);
  await rmdir(join(parent?.fd_path ?? dirname(workdir), basename(workdir))).catch(() => {});
  await parent?.close();
}

export interface Removal {
  removed: boolean;
  kept_because: string | null;
}

export async function removeWorktree(
  options: WorktreeOptions,
  worktree: Worktree,
  force: boolean,
): Promise<Removal> {
  try {
    const { workdir, repo } = worktree;
    await checkRemovable(options, workdir);
    if (repo === null) return await removeFolder(options, workdir, force);
    const repository = await openRepository(options, repo).catch((error) => {
      if (force && error instanceof Problem) return null;
      throw error;
    });
    if (!repository) return await removeFolder(options, workdir, force);
    return await options.queue.run(repository.common_dir, () =>
      removeLinked(options, repository, worktree, force),
    );
  } catch (error) {
    if (error instanceof Problem && error.kind !== 'unavailable') return kept(error.message);
    throw error;
  }
}

/** A workdir goes only if it still is the very folder that was made: inside the roots, no root itself, no link. */
async function checkRemovable(options: WorktreeOptions, workdir: string): Promise<void> {
  const problem = pathProblem('workdir', workdir);
  if (problem) throw problem;
  const roots = options.workdir_roots();
  const located = await locateInside(workdir, roots, problems.workdirNotSafe);
  const real = await realRoots(roots);
  if (located.path !== workdir || real.some((root) => isInside(workdir, root)))
    throw problems.workdirNotSafe();
}

async function removeFolder(options: WorktreeOptions, workdir: string, force: boolean): Promise<Removal> {
  const ours = options.sandboxed && (await isOurs(options, dirname(workdir)));
  const view = { kind: 'records', common_dir: null, workdir: ours ? workdir : null } as const;
  if (ours && !(await isThere(workdir))) return { removed: true, kept_because: null };
  const { left, why } = await options.run(view, 'removeFolder', { path: workdir, force });
  if (left === 'full') return kept(why!);
  await removeOurs(options, workdir);
  return { removed: true, kept_because: null };
}

async function removeLinked(
  options: WorktreeOptions,
  repository: Repository,
  worktree: Worktree,
  force: boolean,
): Promise<Removal> {
  const { run } = options;
  const { workdir, base } = worktree;
  const branch = worktree.branch !== null && isOurBranch(worktree.branch) ? worktree.branch : null;
  const place = { repository, workdir, branch };
  const view = await records(options, repository, workdir);
  const { known, exists } = await run(view, 'inspectWorktree', place);
  if (known === 'main') return kept('it is the main worktree of its repository');
  if (known === 'no' && exists) return removeFolder(options, workdir, force);
  const unsaved =
    exists && !force ? await run({ kind: 'look', workdir }, 'unsaved', { workdir, branch, base }) : null;
  if (unsaved !== null) return kept(unsaved);
  const why = await run(view, 'dropWorktree', { ...place, base, force: force || known === 'no' });
  if (why !== null) return kept(why);
  await removeOurs(options, workdir);
  return { removed: true, kept_because: null };
}

function kept(because: string): Removal {
  return { removed: false, kept_because: because };
}
