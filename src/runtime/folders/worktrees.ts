/**
 * Makes and removes the workdirs of `create_worktree` agents: a git worktree on a branch of its own, or an empty folder.
 * Making one is idempotent: after a crash in the middle the same request finds, or repairs, what is there. Removing one
 * never throws away work that exists nowhere else, unless told to.
 */
import { chown, lstat, readdir, realpath, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeyedQueue } from '../../base/async.ts';
import { limits } from '../../base/limits.ts';
import type { Worktree, WorktreeRequest } from '../../domain/node.ts';
import { invalid, Problem, problems } from '../../domain/problem.ts';
import type { Exec } from '../exec.ts';
import { removeTree } from '../remove-tree.ts';
import type { RunAs } from '../run-as.ts';
import { complaint, type Git, gitRefused } from './git.ts';
import { clearHalfMade } from './half-made.ts';
import { branchName, folderName, isOurBranch } from './names.ts';
import { isInside, type Located, locateInside, makeFolders, pathProblem, requireFolder } from './paths.ts';
import {
  commitOf,
  commitOrNull,
  listWorktrees,
  openRepository,
  type Repository,
  type WorktreeEntry,
} from './repository.ts';
import { unsavedWork } from './unsaved.ts';

export interface WorktreeOptions {
  git: Git;
  exec: Exec;
  env: Record<string, string | undefined>;
  run_as: RunAs | null;
  /** One git command that writes at a time, per repository. */
  queue: KeyedQueue;
  worktree_root: () => string | null;
  /** Folders that workdirs may lie in. */
  workdir_roots: () => string[];
  /** Folders that `worktree_repo` may lie in. */
  repo_roots: () => Promise<string[]>;
}

export async function createWorktree(options: WorktreeOptions, request: WorktreeRequest): Promise<Worktree> {
  const name = folderName(request.name, request.agent_id);
  if (request.repo === null) {
    const target = await locateTarget(options, request, name);
    await makeEmpty(options, target, request.workdir !== null);
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
  if (root === null) await requireFolder('workdir', target);
  return target;
}

async function locateRepository(options: WorktreeOptions, path: string): Promise<Repository> {
  const problem = pathProblem('worktree_repo', path);
  if (problem) throw problem;
  const roots = await options.repo_roots();
  const located = await locateInside(path, roots, problems.repoNotSafe);
  await requireFolder('worktree_repo', located);
  return openRepository(options.git, located.path, roots, problems.repoNotSafe);
}

function checkRef(ref: string | null): void {
  if (ref === null) return;
  if (ref === '' || ref.startsWith('-') || /[\x00-\x1f\x7f]/.test(ref) || ref.length > limits.ref_chars_max) {
    throw invalid('worktree_ref is not a valid ref', 'worktree_ref_invalid');
  }
}

/** Makes the folder; one that exists must be empty, unless its name is ours alone (a second try of the same agent). */
async function makeEmpty(options: WorktreeOptions, target: Located, given: boolean): Promise<string | null> {
  const made = await makeFolders(target, options.run_as ? 0o755 : 0o700);
  if (given && (await readdir(target.path)).length > 0) {
    throw invalid('workdir is not empty', 'workdir_not_empty');
  }
  // A folder that was there before keeps its owner.
  if (made !== null && options.run_as) await chown(target.path, options.run_as.uid, options.run_as.gid);
  return made;
}

async function addWorktree(
  options: WorktreeOptions,
  repository: Repository,
  target: Located,
  name: string,
  ref: string | null,
  again = true,
): Promise<Worktree> {
  const { git } = options;
  const branch = branchName(name);
  const workdir = target.path;
  const answer = (base: string): Worktree => ({ workdir, repo: repository.path, branch, base });

  await git.settled(repository.common_dir);
  await clearKilled(options, repository, workdir, branch);
  const tip = await commitOrNull(git, repository.path, `refs/heads/${branch}`);
  const earlier = await ownEntry(git, repository, workdir, branch);
  if (earlier && !earlier.half_made && tip && (await isFolder(workdir))) return answer(tip);
  const base = tip ?? (await commitOf(git, repository.path, ref));
  if (earlier) await discard(options, repository, workdir);

  const fresh = await locateInside(workdir, options.workdir_roots(), problems.workdirNotSafe);
  const made = await makeEmpty(options, fresh, true);
  try {
    const what = tip ? ['--', workdir, branch] : ['-b', branch, '--', workdir, base];
    await git.ask(repository.path, ['worktree', 'add', '--no-guess-remote', ...what], {
      timeout_ms: limits.git_checkout_timeout_ms,
      lock: repository.common_dir,
    });
    return answer(base);
  } catch (error) {
    // Nothing half-made stays behind a refusal.
    await git.settled(repository.common_dir);
    await clearKilled(options, repository, workdir, branch);
    const left = await ownEntry(git, repository, workdir, branch);
    if (left && !left.half_made) return answer(base);
    if (left) await discard(options, repository, workdir);
    const branched = !tip && (await commitOrNull(git, repository.path, `refs/heads/${branch}`)) !== null;
    if (branched) {
      await git.run(repository.path, ['update-ref', '-d', `refs/heads/${branch}`, base], {
        filters_off: false,
      });
    }
    if (made !== null) await rmdir(workdir).catch(() => {});
    // A killed launcher runs what it was asked a second time, and the branch of the first is in the way of the second.
    const twice = branched && error instanceof Problem && error.kind === 'invalid';
    if (twice && again) return addWorktree(options, repository, target, name, ref, false);
    throw error;
  }
}

/** Git's record of this very worktree; killed early, git has not yet written the branch into it. */
async function ownEntry(
  git: Git,
  repository: Repository,
  workdir: string,
  branch: string,
): Promise<WorktreeEntry | undefined> {
  const entries = await listWorktrees(git, repository);
  return entries.find((each) => each.path === workdir && (each.branch === branch || each.half_made));
}

function clearKilled(
  options: WorktreeOptions,
  { common_dir }: Repository,
  workdir: string,
  branch: string | null,
): Promise<void> {
  return clearHalfMade({ common_dir, workdir, branch, removeTree: (path) => mustRemove(options, path) });
}

/** Throws a worktree's folder and git's record of it away. */
async function discard(options: WorktreeOptions, repository: Repository, path: string): Promise<void> {
  await mustRemove(options, path);
  const removed = await options.git.run(repository.path, ['worktree', 'remove', '-f', '-f', '--', path], {
    filters_off: false,
  });
  if (removed.code !== 0) throw gitRefused(removed);
}

async function mustRemove(options: WorktreeOptions, path: string): Promise<void> {
  const why = await removeTree(options, path);
  if (why !== null) throw new Problem('conflict', 'workdir_not_removed', why);
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
    const roots = await options.repo_roots();
    const repository = await openRepository(options.git, repo, roots, problems.repoNotSafe).catch((error) => {
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
  const real = await Promise.all(roots.map((root) => realpath(root).catch(() => root)));
  if (located.path !== workdir || real.some((root) => isInside(workdir, root)))
    throw problems.workdirNotSafe();
}

async function removeFolder(options: WorktreeOptions, workdir: string, force: boolean): Promise<Removal> {
  if (force) await removeTree(options, workdir);
  try {
    await rmdir(workdir);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return kept('the folder is not empty');
    if (code !== 'ENOENT') return kept(`the folder cannot be removed: ${code}`);
  }
  return { removed: true, kept_because: null };
}

async function removeLinked(
  options: WorktreeOptions,
  repository: Repository,
  worktree: Worktree,
  force: boolean,
): Promise<Removal> {
  const { git } = options;
  const { workdir } = worktree;
  const branch = worktree.branch !== null && isOurBranch(worktree.branch) ? worktree.branch : null;
  await clearKilled(options, repository, workdir, branch);
  const [main, ...linked] = await listWorktrees(git, repository);
  if (main?.path === workdir) return kept('it is the main worktree of its repository');
  const exists = await isFolder(workdir);
  const entry = linked.find((each) => each.path === workdir);

  if (!entry) {
    if (exists) return await removeFolder(options, workdir, force);
  } else {
    const unsaved = exists && !force ? await unsavedWork(git, workdir, branch, worktree.base) : null;
    if (unsaved) return kept(unsaved);
    if (force || !exists) await discard(options, repository, workdir);
    else {
      // Forced, because git refuses any worktree with a submodule's entry; one that a person locked it still keeps.
      const removed = await git.run(repository.path, ['worktree', 'remove', '--force', '--', workdir]);
      if (options.run_as) await rmdir(workdir).catch(() => {});
      if (await isFolder(workdir)) return kept(complaint(removed));
      const left = (await listWorktrees(git, repository)).some((each) => each.path === workdir);
      if (left) await discard(options, repository, workdir);
    }
  }
  if (branch) await dropBranch(git, repository, branch, worktree.base);
  return { removed: true, kept_because: null };
}

/** Deletes the branch unless commits on it exist nowhere else. */
async function dropBranch(
  git: Git,
  repository: Repository,
  branch: string,
  base: string | null,
): Promise<void> {
  if (await unsavedWork(git, repository.path, branch, base, { commits_only: true })) return;
  await git.run(repository.path, ['branch', '-D', '--', branch], { filters_off: false });
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isDirectory() ?? false;
}

function kept(because: string): Removal {
  return { removed: false, kept_because: because };
}
