/**
 * Everything that the service does in folders that agents can write to. With `agents.run_as` or `agents.sandbox`, jobs
 * run in a worker (`worker.ts`) that has no more rights than the agents. A job trusts nothing that it finds there, and
 * the caller trusts the job's answer no more than an agent's. Requests and answers are plain JSON.
 */
import { rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { firstNames } from '../../base/files.ts';
import { limits } from '../../base/limits.ts';
import type { ChangesListRequest, ChangesRequest, DiffOptions } from '../../core/node.ts';
import { invalid, type Problem, problems } from '../../core/problem.ts';
import { type HeldFolder, holdFolder } from '../confinement/held-folder.ts';
import type { Exec } from '../processes/exec.ts';
import { systemTool } from '../processes/tools.ts';
import { listChanges, showChange } from './changes.ts';
import { findFiles } from './find-files.ts';
import { findRepositories, type RepositorySearch } from './find-repositories.ts';
import { firstError, type Git } from './git.ts';
import { makePatch } from './patch.ts';
import { type Located, makeFolders } from './paths.ts';
import { commitOf, openRepository, type Repository } from './repository.ts';
import { unsavedWork } from './unsaved.ts';
import * as worktrees from './worktree-jobs.ts';

export interface JobContext {
  exec: Exec;
  git: Git;
  /** Real folders that repositories may be in. */
  repo_roots: () => Promise<string[]>;
  /** This process has no more rights than the agents. */
  confined: boolean;
}

export const jobs = {
  changes: async ({ git, repo_roots }: JobContext, request: ChangesListRequest) =>
    listChanges(git, request, await repo_roots()),

  change: async (
    { git, repo_roots }: JobContext,
    { path, context, ...request }: ChangesRequest & DiffOptions & { path: string },
  ) => showChange(git, request, { path, context, roots: await repo_roots() }),

  /** Returns base64. */
  patch: async ({ git, repo_roots }: JobContext, request: ChangesRequest) =>
    (await makePatch(git, request, await repo_roots())).toString('base64'),

  /** Takes several queries, because git lists the files once for all of them. The results are in the same order. */
  files: async (
    { git, repo_roots }: JobContext,
    { workdir, queries }: { workdir: string; queries: string[] },
  ) => findFiles(git, workdir, queries, await repo_roots()),

  repositories: async ({ git, repo_roots }: JobContext, search: RepositorySearch) =>
    findRepositories(git, search, await repo_roots()),

  openRepository: async ({ git, repo_roots }: JobContext, { path }: { path: string }) =>
    openRepository(git, path, await repo_roots(), problems.repoNotSafe),

  /** The commit that `ref` names in a folder's repository. With `ref` null, the commit of HEAD. */
  commitOf: ({ git }: JobContext, { path, ref }: { path: string; ref: string | null }) =>
    commitOf(git, path, ref),

  /** A message about the work that would be lost with a worktree; null if none would. */
  unsaved: ({ git }: JobContext, work: { workdir: string; branch: string | null; base: string | null }) =>
    unsavedWork(git, work.workdir, work.branch, work.base),

  /**
   * Returns the path of the first folder that it created; null if the folder existed. `empty`: an existing folder must
   * be empty.
   */
  makeFolder: async (
    _: JobContext,
    { located, mode, empty }: { located: Located; mode: number; empty: boolean },
  ) => {
    const made = await makeFolders(located, { mode });
    if (empty) await requireEmpty(located.path);
    return made;
  },

  removeFolder: (context: JobContext, { path, force }: { path: string; force: boolean }) =>
    removeFolder(context, path, force),

  /** Whether a folder is missing or empty. */
  isVacant: (_: JobContext, { path }: { path: string }) => worktrees.isVacant(path),

  prepareWorktree: (context: JobContext, place: worktrees.WorktreePlace & { owned_by_agent: boolean }) =>
    worktrees.prepare(context, place),
  addWorktreeRecord: (context: JobContext, place: worktrees.WorktreePlace & worktrees.WorktreeStart) =>
    worktrees.addRecord(context, place),
  checkOutWorktree: (
    context: JobContext,
    { repository, workdir }: { repository: Repository; workdir: string },
  ) => worktrees.checkOut(context, repository, workdir),
  unlockWorktree: (
    context: JobContext,
    { repository, workdir }: { repository: Repository; workdir: string },
  ) => worktrees.unlock(context, repository, workdir),
  undoWorktree: (context: JobContext, place: worktrees.WorktreePlace & worktrees.WorktreeStart) =>
    worktrees.undo(context, place),
  clearRepository: (_: JobContext, repository: Repository) => worktrees.clearRepository(repository),
  inspectWorktree: (context: JobContext, place: worktrees.WorktreePlace) => worktrees.inspect(context, place),
  dropWorktree: (context: JobContext, place: worktrees.WorktreePlace & worktrees.Drop) =>
    worktrees.drop(context, place),
} satisfies Record<string, (context: JobContext, request: never) => Promise<unknown>>;

export type JobName = keyof typeof jobs;
export type JobRequest<Name extends JobName> = Parameters<(typeof jobs)[Name]>[1];
export type JobAnswer<Name extends JobName> = Awaited<ReturnType<(typeof jobs)[Name]>>;

export function workdirNotEmpty(): Problem {
  return invalid('workdir is not empty', 'workdir_not_empty');
}

/** Throws unless the folder is empty. */
export async function requireEmpty(path: string): Promise<void> {
  const held = await holdFolder(path);
  try {
    if ((await firstNames(held.fd_path, 1)).length > 0) throw workdirNotEmpty();
  } finally {
    await held.close();
  }
}

export interface Removed {
  /** `empty`: the folder still exists, because this process may not remove it from its parent. */
  left: 'nothing' | 'empty' | 'full';
  /** Null if `left` is `nothing`. */
  why: string | null;
}

/**
 * Removes an empty folder, or with `force` any folder. Keeps its parent open, so that replacing the parent does not
 * change what is removed. Idempotent.
 */
export async function removeFolder(context: JobContext, path: string, force: boolean): Promise<Removed> {
  const name = basename(path);
  let parent: HeldFolder;
  try {
    parent = await holdFolder(dirname(path));
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' ? GONE : { left: 'full', why: `the folder cannot be removed: ${code}` };
  }
  try {
    if (force) await removeTree(context, parent, name);
    await rmdir(join(parent.fd_path, name));
    return GONE;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return GONE;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return { left: 'full', why: 'the folder is not empty' };
    const empty = await requireEmpty(path).then(
      () => true,
      () => false,
    );
    return { left: empty ? 'empty' : 'full', why: `the folder cannot be removed: ${code}` };
  } finally {
    await parent.close();
  }
}

const GONE: Removed = { left: 'nothing', why: null };

/** Uses `rm`, which holds folders open while it descends. The launcher cannot use this process's descriptors. */
async function removeTree({ exec, confined }: JobContext, parent: HeldFolder, name: string): Promise<void> {
  const [cwd, path] = confined ? [parent.fd_path, `./${name}`] : ['/', join(parent.path, name)];
  const result = await exec.run([systemTool('rm'), '-rf', '--', path], {
    cwd,
    env: { LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: limits.git_checkout_timeout_ms,
  });
  if (result.timed_out) throw Object.assign(new Error(firstError(result, 'rm')), { code: 'EBUSY' });
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
