/**
 * Creates and removes the workdirs of `create_worktree` agents: a git worktree on its own branch, or an empty folder.
 * Creating a workdir is idempotent: after a crash, the same request finds or repairs what exists. Removing a workdir
 * never deletes work that exists nowhere else, unless forced. This module runs the steps, which are jobs
 * (`worktree-jobs.ts`), in order.
 */
import { lstat, realpath, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isExhausted } from '../../base/files.ts';
import type { Worktree, WorktreeRemoval, WorktreeRequest } from '../../core/node.ts';
import { invalid, Problem, problems } from '../../core/problem.ts';
import { holdFolder } from '../confinement/held-folder.ts';
import type { RunAs } from '../confinement/run-as.ts';
import type { FolderView } from '../confinement/sandbox.ts';
import { limits } from '../limits.ts';
import { requireEmpty } from './jobs.ts';
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
import { isAgentsOwn } from './repository-link.ts';
import type { RunJob } from './worker-client.ts';
import type { WorktreeClaims } from './worktree-claims.ts';
import { branchName, folderName, isServiceBranch } from './worktree-names.ts';

const MAIN_WORKTREE = 'it is the main worktree of its repository';

export interface WorktreeOptions {
  run: RunJob;
  /** The view in which git may open a repository (its real path). */
  viewOf: (path: string) => Promise<FolderView>;
  run_as: RunAs | null;
  /** Agents run in a sandbox. Below `worktree_roots`, each of them sees only its own folder. */
  sandboxed: boolean;
  /** Runs work that writes to a repository, one at a time per repository. */
  inRepository: <T>(common_dir: string, work: () => Promise<T>) => Promise<T>;
  worktree_root: () => string | null;
  /** Records a folder for worktrees (its real path). Called before a worktree is created in it. */
  addRoot: (root: string) => Promise<void>;
  /** Folders that contain only worktrees, each created by this service for one agent. */
  worktree_roots: () => Promise<string[]>;
  claims: WorktreeClaims;
  /**
   * Throws `worktree_root_shared` if worktrees below a real path would be visible to other agents in spite of a
   * sandbox.
   */
  checkSeparate: (root: string) => Promise<void>;
  /** Folders that workdirs may be in. */
  workdir_roots: () => Promise<string[]>;
  /** Real folders that `worktree_repo` may be in. */
  repo_roots: () => Promise<string[]>;
}

/** See `Folders.createWorktree`. Idempotent by agent id. */
export async function createWorktree(options: WorktreeOptions, request: WorktreeRequest): Promise<Worktree> {
  const name = folderName(request.name, request.agent_id);
  if (request.repo === null) {
    const target = await locateTarget(options, request, name);
    const owned_by_agent = await isOfAgent(options, request, target.path);
    await makeFolder(options, target, !owned_by_agent);
    await options.claims.add(request.agent_id, target.path, null);
    return { workdir: target.path, repo: null, branch: null, base: null };
  }
  checkRef(request.ref);
  const repository = await locateRepository(options, request.repo);
  const target = await locateTarget(options, request, name);
  return options.inRepository(repository.common_dir, () =>
    addWorktree(options, repository, target, name, request),
  );
}

/**
 * Whether an earlier attempt created a folder for this agent. Releases before 0.1 recorded no claims. Their folders
 * belong to the agent if the plane has recorded them, or if the service chose the name and agents cannot create folders
 * there.
 */
async function isOfAgent(
  options: WorktreeOptions,
  { agent_id, workdir, recorded }: WorktreeRequest,
  path: string,
): Promise<boolean> {
  const claimed = await options.claims.isOf(agent_id, path);
  return claimed ?? (recorded || (isDerived(workdir) && (await isClosedToAgents(options, dirname(path)))));
}

function isDerived(workdir: string | null): boolean {
  return workdir === null || workdir === '';
}

async function locateTarget(
  options: WorktreeOptions,
  request: WorktreeRequest,
  name: string,
): Promise<Located> {
  const root = request.root ?? options.worktree_root();
  const { workdir } = request;
  if (workdir === null || isDerived(workdir)) {
    if (root === null) throw problems.workdirRequired();
    const wrong = pathProblem('default_worktree_root', root);
    if (wrong) throw wrong;
    const target = await locateInside(
      join(root, name),
      await options.workdir_roots(),
      problems.workdirNotSafe,
    );
    // The folder became the root after an agent had received it as its own.
    if ((await options.claims.agentOf(dirname(target.path))) !== null) throw problems.workdirNotSafe();
    await options.checkSeparate(dirname(target.path));
    await options.addRoot(dirname(target.path));
    return target;
  }
  const problem = pathProblem('workdir', workdir);
  if (problem) throw problem;
  const target = await locateInside(workdir, await options.workdir_roots(), problems.workdirNotSafe);
  // Deeper levels belong to the worktrees of other agents.
  for (const worktree_root of await realRoots(await options.worktree_roots())) {
    if (isInside(target.path, worktree_root)) throw problems.workdirNotSafe();
    if (!isInside(worktree_root, target.path)) continue;
    // Links are rejected too, because they could have changed since the owner of the folder was determined.
    const direct = workdir.replace(/\/+$/, '') === target.path;
    if (dirname(target.path) !== worktree_root || !direct) throw problems.workdirNotSafe();
    await options.addRoot(worktree_root);
  }
  if (root === null) await requireFolder('workdir', target);
  return target;
}

/**
 * Returns the real path of a repository from which a worktree can be made. Throws the Problem of `createWorktree` if none
 * can. Changes nothing.
 */
export async function checkRepository(options: WorktreeOptions, repo: string): Promise<string> {
  const { path } = await locateRepository(options, repo);
  await options.run(await options.viewOf(path), 'commitOf', { path, ref: null });
  return path;
}

async function locateRepository(options: WorktreeOptions, path: string): Promise<Repository> {
  const problem = pathProblem('worktree_repo', path);
  if (problem) throw problem;
  const roots = await options.repo_roots();
  const located = await locateInside(path, roots, problems.repoNotSafe);
  await requireFolder('worktree_repo', located);
  return openRepository(options, located.path);
}

/** Finds a repository and checks the answer of the job, which is trusted no more than the repository. */
async function openRepository(options: WorktreeOptions, path: string): Promise<Repository> {
  const { common_dir } = await options.run(await options.viewOf(path), 'openRepository', { path });
  const roots = await options.repo_roots();
  const real = await realpath(common_dir).catch(() => null);
  const is_allowed =
    real === common_dir &&
    roots.some((root) => isInside(root, common_dir)) &&
    (await isGitFolder(common_dir)) &&
    !(options.sandboxed && (await isAgentsOwn(common_dir, await realRoots(await options.worktree_roots()))));
  if (!is_allowed) throw problems.repoNotSafe();
  return { path, common_dir };
}

/**
 * The answer of a job in an agent's folder could name one of the operator's folders, in which files would then be
 * removed.
 */
async function isGitFolder(path: string): Promise<boolean> {
  const entries = ['HEAD', 'objects', 'refs'].map((name) => lstat(join(path, name)).catch(() => null));
  return (await Promise.all(entries)).every((entry) => entry !== null);
}

/** Removes special files that would block git from the repository of a folder. */
export async function clearRepository(options: WorktreeOptions, path: string): Promise<void> {
  const repository = await openRepository(options, path);
  const view = { kind: 'records', common_dir: repository.common_dir, workdir: null } as const;
  await options.inRepository(repository.common_dir, () => options.run(view, 'clearRepository', repository));
}

function checkRef(ref: string | null): void {
  if (ref === null) return;
  if (ref === '' || ref.startsWith('-') || /[\x00-\x1f\x7f]/.test(ref) || ref.length > limits.ref_chars_max) {
    throw invalid('worktree_ref is not a valid ref', 'worktree_ref_invalid');
  }
}

/**
 * Creates the folder. With `empty`, an existing folder must be empty. If agents cannot redirect the path, the service
 * creates the folder and changes its owner; otherwise, a job creates it. Returns the path of the first folder that was
 * created.
 */
async function makeFolder(options: WorktreeOptions, target: Located, empty: boolean): Promise<string | null> {
  const { run, run_as } = options;
  const mode = run_as ? 0o755 : 0o700;
  if (await isClosedToAgents(options, dirname(target.path))) {
    const fresh = empty ? await withoutEmptyFolder(options, target) : target;
    const made = await makeFolders(fresh, { mode, ...(run_as && { owner: run_as }) });
    if (empty) await requireEmpty(target.path);
    return made;
  }
  return run({ kind: 'records', common_dir: null, workdir: null }, 'makeFolder', {
    located: target,
    mode,
    empty,
  });
}

/**
 * Removes an empty folder below a worktree root, because a process of an earlier agent may still use it as its
 * directory.
 */
async function withoutEmptyFolder(options: WorktreeOptions, target: Located): Promise<Located> {
  const { path, missing } = target;
  const confined = options.sandboxed || options.run_as !== null;
  if (!confined || missing.length > 0) return target;
  if (!(await realRoots(await options.worktree_roots())).includes(dirname(path))) return target;
  await requireEmpty(path);
  await removeEmptyFolder(options, path);
  return (await exists(path)) ? target : { path, missing: [basename(path)] };
}

/** Whether agents cannot rename, replace or add anything in a folder or its parents. The folder may not exist yet. */
async function isClosedToAgents(
  { run_as, sandboxed, worktree_roots }: WorktreeOptions,
  folder: string,
): Promise<boolean> {
  if (!run_as) return !sandboxed || (await realRoots(await worktree_roots())).includes(folder);
  for (let path = folder; ; path = dirname(path)) {
    try {
      const held = await holdFolder(path);
      const closed = held.isWritableOnlyBy(process.getuid!());
      await held.close();
      return closed;
    } catch (error) {
      if (isExhausted(error)) throw error;
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return false;
    }
  }
}

async function exists(folder: string): Promise<boolean> {
  const held = await holdFolder(folder).catch((error: unknown) => {
    if (isExhausted(error)) throw error;
    return null;
  });
  await held?.close();
  return held !== null;
}

async function addWorktree(
  options: WorktreeOptions,
  repository: Repository,
  target: Located,
  name: string,
  request: WorktreeRequest,
  again = true,
): Promise<Worktree> {
  const { run, claims } = options;
  const workdir = target.path;
  const branch = branchName(name);
  const place = { repository, workdir, branch };
  const answer = (base: string | null): Worktree => ({ workdir, repo: repository.path, branch, base });

  const owned_by_agent = await isOfAgent(options, request, workdir);
  // Checked before a job gets access to a folder that may belong to another agent.
  if (!owned_by_agent && (await isClosedToAgents(options, dirname(workdir))) && (await exists(workdir))) {
    await requireEmpty(workdir);
  }
  const before = await records(options, repository, workdir);
  const { is_complete, branch_commit } = await run(before, 'prepareWorktree', { ...place, owned_by_agent });
  // Not the commit of the branch, which may have commits of the agent by now.
  const known_base = await claims.baseOf(workdir, request.agent_id);
  if (is_complete) return answer(known_base);
  const { path } = repository;
  const commit =
    branch_commit ?? (await run(await options.viewOf(path), 'commitOf', { path, ref: request.ref }));
  const start = { commit, new_branch: branch_commit === null };
  const base = start.new_branch ? commit : known_base;

  const fresh = await locateInside(workdir, await options.workdir_roots(), problems.workdirNotSafe);
  const folder = await makeFolder(options, fresh, true);
  await claims.add(request.agent_id, workdir, base);
  const view = await records(options, repository, workdir);
  try {
    await run(view, 'addWorktreeRecord', { ...place, ...start });
    await run({ kind: 'checkout', workdir }, 'checkOutWorktree', { repository, workdir });
    await run(view, 'unlockWorktree', { repository, workdir });
    return answer(base);
  } catch (error) {
    const { deleted_branch } = await run(view, 'undoWorktree', { ...place, ...start });
    if (folder !== null) await removeEmptyFolder(options, workdir);
    // If the launcher is killed, the request runs twice, and the second run finds the branch of the first.
    const twice = deleted_branch && error instanceof Problem && error.kind === 'invalid';
    if (twice && again) return addWorktree(options, repository, target, name, request, false);
    throw error;
  }
}

/**
 * The view for jobs that write a repository's records of worktrees. It includes the folder if that is outside the safe
 * paths.
 */
async function records(options: WorktreeOptions, { common_dir }: Repository, workdir: string) {
  const needs_mount =
    options.sandboxed && (await isClosedToAgents(options, dirname(workdir))) && (await exists(workdir));
  return { kind: 'records', common_dir, workdir: needs_mount ? workdir : null } as const;
}

/** Removes an empty folder if only the service can write to its parent. */
async function removeEmptyFolder(options: WorktreeOptions, workdir: string): Promise<void> {
  if (!(await isClosedToAgents(options, dirname(workdir)))) return;
  const parent = await holdFolder(dirname(workdir)).catch(() => null);
  await rmdir(join(parent?.fd_path ?? dirname(workdir), basename(workdir))).catch(() => {});
  await parent?.close();
}

/** See `Folders.removeWorktree`. Idempotent. Throws only `unavailable`; other Problems become the reason. */
export async function removeWorktree(
  options: WorktreeOptions,
  worktree: Worktree,
  force: boolean,
): Promise<WorktreeRemoval> {
  try {
    await checkRemovable(options, worktree.workdir);
    const removal = await remove(options, await withClaimedBase(options, worktree), force);
    if (removal.removed) await options.claims.forget(worktree.workdir);
    return removal;
  } catch (error) {
    if (error instanceof Problem && error.kind !== 'unavailable') return keptReason(error.message);
    throw error;
  }
}

/** See `Folders.whyKept`. Throws only `unavailable`; other Problems become the reason. */
export async function whyKept(options: WorktreeOptions, worktree: Worktree): Promise<string | null> {
  const { workdir, repo } = worktree;
  try {
    await checkRemovable(options, workdir);
    if (repo === null) return await whyFolderKept(options, workdir);
    const known = await withClaimedBase(options, worktree);
    const repository = await openRepository(options, repo);
    return await options.inRepository(repository.common_dir, () => whyLinkedKept(options, repository, known));
  } catch (error) {
    if (error instanceof Problem && error.kind !== 'unavailable') return error.message;
    throw error;
  }
}

/** Earlier planes recorded a later commit for a worktree that several agents shared, so the claim comes first. */
async function withClaimedBase({ claims }: WorktreeOptions, worktree: Worktree): Promise<Worktree> {
  return { ...worktree, base: (await claims.baseOf(worktree.workdir)) ?? worktree.base };
}

async function whyLinkedKept(
  options: WorktreeOptions,
  repository: Repository,
  worktree: Worktree,
): Promise<string | null> {
  const { workdir, base } = worktree;
  const branch = serviceBranch(worktree);
  const view = await records(options, repository, workdir);
  const place = { repository, workdir, branch };
  const { known, exists, locked } = await options.run(view, 'inspectWorktree', place);
  if (known === 'main') return MAIN_WORKTREE;
  if (!exists) return null;
  if (known === 'no') return whyFolderKept(options, workdir);
  const unsaved = await options.run({ kind: 'read', workdir }, 'unsaved', { workdir, branch, base });
  return unsaved ?? (locked ? 'it is a locked working tree' : null);
}

async function whyFolderKept(options: WorktreeOptions, workdir: string): Promise<string | null> {
  if (!(await exists(workdir))) return null;
  const vacant = await options.run({ kind: 'read', workdir }, 'isVacant', { path: workdir });
  return vacant ? null : 'the folder is not empty';
}

async function remove(
  options: WorktreeOptions,
  worktree: Worktree,
  force: boolean,
): Promise<WorktreeRemoval> {
  const { workdir, repo } = worktree;
  if (repo === null) return await removeFolder(options, workdir, force);
  const repository = await openRepository(options, repo).catch((error) => {
    if (force && error instanceof Problem) return null;
    throw error;
  });
  if (!repository) return await removeFolder(options, workdir, force);
  return await options.inRepository(repository.common_dir, () =>
    removeLinked(options, repository, worktree, force),
  );
}

/** Throws `workdir_not_safe` unless the workdir is inside the roots and neither a root nor a link. */
async function checkRemovable(options: WorktreeOptions, workdir: string): Promise<void> {
  const problem = pathProblem('workdir', workdir);
  if (problem) throw problem;
  const roots = await options.workdir_roots();
  const located = await locateInside(workdir, roots, problems.workdirNotSafe);
  const real = await realRoots(roots);
  if (located.path !== workdir || real.some((root) => isInside(workdir, root)))
    throw problems.workdirNotSafe();
}

async function removeFolder(
  options: WorktreeOptions,
  workdir: string,
  force: boolean,
): Promise<WorktreeRemoval> {
  const needs_mount = options.sandboxed && (await isClosedToAgents(options, dirname(workdir)));
  const view = { kind: 'records', common_dir: null, workdir: needs_mount ? workdir : null } as const;
  if (needs_mount && !(await exists(workdir))) return { removed: true, kept_because: null };
  const { left, why } = await options.run(view, 'removeFolder', { path: workdir, force });
  if (left === 'full') return keptReason(why!);
  await removeEmptyFolder(options, workdir);
  return { removed: true, kept_because: null };
}

async function removeLinked(
  options: WorktreeOptions,
  repository: Repository,
  worktree: Worktree,
  force: boolean,
): Promise<WorktreeRemoval> {
  const { run } = options;
  const { workdir, base } = worktree;
  const branch = serviceBranch(worktree);
  const place = { repository, workdir, branch };
  const view = await records(options, repository, workdir);
  const { known, exists } = await run(view, 'inspectWorktree', place);
  if (known === 'main') return keptReason(MAIN_WORKTREE);
  if (known === 'no' && exists) return removeFolder(options, workdir, force);
  const unsaved =
    exists && !force ? await run({ kind: 'read', workdir }, 'unsaved', { workdir, branch, base }) : null;
  if (unsaved !== null) return keptReason(unsaved);
  const drop = { ...place, base, force: force || known === 'no' };
  const { kept, branch_kept } = await run(view, 'dropWorktree', drop);
  if (kept !== null) return keptReason(kept);
  await removeEmptyFolder(options, workdir);
  return { removed: true, kept_because: branch_kept };
}

/** The branch of a worktree if this service created it. It never deletes any other branch. */
function serviceBranch({ branch }: Worktree): string | null {
  return branch !== null && isServiceBranch(branch) ? branch : null;
}

function keptReason(because: string): WorktreeRemoval {
  return { removed: false, kept_because: because };
}
