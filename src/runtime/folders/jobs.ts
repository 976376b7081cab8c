/**
 * Everything that is done in folders that agents can write to. With `agents.run_as` or `agents.sandbox` it runs in a
 * worker (`worker.ts`) that has no more rights than the agents, so a job trusts nothing that it finds there and whoever
 * asked trusts its answer no more than an agent's. Arguments and answers are plain JSON.
 */
import { readdir, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { limits } from '../../base/limits.ts';
import type { ChangesRequest } from '../../domain/node.ts';
import { invalid, problems } from '../../domain/problem.ts';
import type { Exec } from '../exec.ts';
import { type HeldFolder, holdFolder } from '../held-folder.ts';
import { listChanges, showChange } from './changes.ts';
import { findFiles } from './files.ts';
import { complaint, type Git } from './git.ts';
import { type Located, makeFolders } from './paths.ts';
import { openRepository, type Repository } from './repository.ts';
import { unsavedWork } from './unsaved.ts';
import * as worktrees from './worktree-jobs.ts';

export interface JobContext {
  exec: Exec;
  git: Git;
  /** Real folders that repositories may lie in. */
  repo_roots: () => Promise<string[]>;
  /** This process has no more rights than the agents. */
  confined: boolean;
}

export const jobs = {
  changes: async ({ git, repo_roots }: JobContext, request: ChangesRequest) =>
    listChanges(git, request, await repo_roots()),

  change: async ({ git, repo_roots }: JobContext, request: ChangesRequest & { path: string }) =>
    showChange(git, request, request.path, await repo_roots()),

  files: async ({ git, repo_roots }: JobContext, { workdir, words }: { workdir: string; words: string }) =>
    findFiles(git, workdir, words, await repo_roots()),

  openRepository: async ({ git, repo_roots }: JobContext, { path }: { path: string }) =>
    openRepository(git, path, await repo_roots(), problems.repoNotSafe),

  /** What would be lost with a worktree; null when nothing would. */
  unsaved: ({ git }: JobContext, work: { workdir: string; branch: string | null; base: string | null }) =>
    unsavedWork(git, work.workdir, work.branch, work.base),

  /** The path of the first folder that it made; null: the folder was there. With `empty`, one that is not is refused. */
  makeFolder: async (
    _: JobContext,
    { located, mode, empty }: { located: Located; mode: number; empty: boolean },
  ) => {
    const made = await makeFolders(located, { mode });
    if (empty) await mustBeEmpty(located.path);
    return made;
  },

  removeFolder: (context: JobContext, { path, force }: { path: string; force: boolean }) =>
    removeFolder(context, path, force),

  prepareWorktree: (context: JobContext, place: worktrees.WorktreePlace & { ref: string | null }) =>
    worktrees.prepare(context, place),
  linkWorktree: (context: JobContext, place: worktrees.WorktreePlace & worktrees.Start) =>
    worktrees.link(context, place),
  fillWorktree: (context: JobContext, { repository, workdir }: { repository: Repository; workdir: string }) =>
    worktrees.fill(context, repository, workdir),
  finishWorktree: (
    context: JobContext,
    { repository, workdir }: { repository: Repository; workdir: string },
  ) => worktrees.finish(context, repository, workdir),
  undoWorktree: (context: JobContext, place: worktrees.WorktreePlace & worktrees.Start) =>
    worktrees.undo(context, place),
  inspectWorktree: (context: JobContext, place: worktrees.WorktreePlace) => worktrees.inspect(context, place),
  dropWorktree: (context: JobContext, place: worktrees.WorktreePlace & worktrees.Drop) =>
    worktrees.drop(context, place),
} satisfies Record<string, (context: JobContext, request: never) => Promise<unknown>>;

export type JobName = keyof typeof jobs;
export type JobRequest<Name extends JobName> = Parameters<(typeof jobs)[Name]>[1];
export type JobAnswer<Name extends JobName> = Awaited<ReturnType<(typeof jobs)[Name]>>;

/** Throws unless the folder is empty. */
export async function mustBeEmpty(path: string): Promise<void> {
  const held = await holdFolder(path);
  try {
    if ((await readdir(held.fd_path)).length > 0) throw invalid('workdir is not empty', 'workdir_not_empty');
  } finally {
    await held.close();
  }
}

export interface Removed {
  /** `empty`: it is still there, since this process may not take it out of its parent. */
  left: 'nothing' | 'empty' | 'full';
  /** Null with `nothing`. */
  why: string | null;
}

/** Removes a folder, with `force` whatever is in it. Its parent is held, so nobody who swaps that decides what goes. */
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
    const empty = await mustBeEmpty(path).then(
      () => true,
      () => false,
    );
    return { left: empty ? 'empty' : 'full', why: `the folder cannot be removed: ${code}` };
  } finally {
    await parent.close();
  }
}

const GONE: Removed = { left: 'nothing', why: null };

/** By `rm`, because it holds folders open on its way down. A process of another may not go through our descriptors. */
async function removeTree({ exec, confined }: JobContext, parent: HeldFolder, name: string): Promise<void> {
  const [cwd, path] = confined ? [parent.fd_path, `./${name}`] : ['/', join(parent.path, name)];
  const result = await exec.run(['rm', '-rf', '--', path], {
    cwd,
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    output_bytes_max: 4_096,
    timeout_ms: limits.git_checkout_timeout_ms,
  });
  if (result.timed_out) throw Object.assign(new Error(complaint(result, 'rm')), { code: 'EBUSY' });
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
