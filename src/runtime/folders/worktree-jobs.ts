/**
 * The steps in which a git worktree is made and removed, each of which may be cut short by a crash and taken again. Two
 * kinds never mix: steps that write git's records of worktrees run nothing that the repository configures, and the
 * checkout, which may, runs where those records cannot be written.
 */
import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../../base/limits.ts';
import { Problem } from '../../domain/problem.ts';
import { complaint, type Git } from './git.ts';
import { clearHalfMade } from './half-made.ts';
import { type JobContext, removeFolder } from './jobs.ts';
import { commitOf, commitOrNull, listWorktrees, type Repository, type WorktreeEntry } from './repository.ts';
import { unsavedWork } from './unsaved.ts';

export interface WorktreePlace {
  repository: Repository;
  workdir: string;
  /** One that this service made; null: none. No other branch is ever touched. */
  branch: string | null;
}

export interface Start {
  /** Commit that the worktree starts from. */
  base: string;
  /** False: its branch is there already. */
  new_branch: boolean;
}

export interface Drop {
  base: string | null;
  /** Whatever is in it. */
  force: boolean;
}

/** Clears what an earlier try left. `made`: there is nothing left to do. */
export async function prepare(
  context: JobContext,
  { repository, workdir, branch, ref }: WorktreePlace & { ref: string | null },
): Promise<Start & { made: boolean }> {
  const { git } = context;
  await git.settled(repository.common_dir);
  await clearKilled(context, repository, workdir, branch);
  const tip = await commitOrNull(git, repository.path, `refs/heads/${branch}`);
  const earlier = await ownEntry(git, repository, workdir, branch);
  if (earlier && !earlier.half_made && tip && (await isFolder(workdir))) {
    return { made: true, base: tip, new_branch: false };
  }
  const base = tip ?? (await commitOf(git, repository.path, ref));
  if (earlier) await discard(context, repository, workdir);
  return { made: false, base, new_branch: !tip };
}

/** Makes branch and record, and no file of the commit. Locked as git locks what it has begun, until `finish`. */
export async function link(
  { git }: JobContext,
  { repository, workdir, branch, base, new_branch }: WorktreePlace & Start,
): Promise<null> {
  const what = new_branch ? ['-b', branch!, '--', workdir, base] : ['--', workdir, branch!];
  const options = ['--no-checkout', '--no-guess-remote', '--lock', '--reason', 'initializing'];
  await git.ask(repository.path, ['worktree', 'add', ...options, ...what], {
    timeout_ms: limits.git_checkout_timeout_ms,
    filters_off: false,
    lock: repository.common_dir,
  });
  return null;
}

/** Checks out what the worktree starts from. */
export async function fill({ git }: JobContext, { common_dir }: Repository, workdir: string): Promise<null> {
  await git.ask(workdir, ['reset', '--hard', '--no-recurse-submodules', '--quiet'], {
    timeout_ms: limits.git_checkout_timeout_ms,
    lock: common_dir,
  });
  return null;
}

/** From here on the worktree counts as made. */
export async function finish({ git }: JobContext, repository: Repository, workdir: string): Promise<null> {
  await git.ask(repository.path, ['worktree', 'unlock', '--', workdir], { filters_off: false });
  return null;
}

/** Nothing half-made stays behind a refusal. Answers whether the branch was made by what failed. */
export async function undo(
  context: JobContext,
  { repository, workdir, branch, base, new_branch }: WorktreePlace & Start,
): Promise<{ branched: boolean }> {
  const { git } = context;
  await git.settled(repository.common_dir);
  await clearKilled(context, repository, workdir, branch);
  if (await ownEntry(git, repository, workdir, branch)) await discard(context, repository, workdir);
  const name = `refs/heads/${branch}`;
  const branched = new_branch && (await commitOrNull(git, repository.path, name)) !== null;
  if (branched) await git.run(repository.path, ['update-ref', '-d', name, base], { filters_off: false });
  return { branched };
}

/** What git knows of a folder: its main worktree, one of its own that is linked, or nothing. */
export async function inspect(
  context: JobContext,
  { repository, workdir, branch }: WorktreePlace,
): Promise<{ known: 'main' | 'linked' | 'no'; exists: boolean }> {
  await clearKilled(context, repository, workdir, branch);
  const [main, ...linked] = await listWorktrees(context.git, repository);
  const known =
    main?.path === workdir ? 'main' : linked.some(({ path }) => path === workdir) ? 'linked' : 'no';
  return { known, exists: await isFolder(workdir) };
}

/** Removes folder, record and, unless its commits exist nowhere else, branch. Answers null, or why it was kept. */
export async function drop(
  context: JobContext,
  { repository, workdir, branch, base, force }: WorktreePlace & Drop,
): Promise<string | null> {
  const { git } = context;
  if (force || !(await isFolder(workdir))) await discard(context, repository, workdir);
  else {
    // Forced, because git refuses any worktree with a submodule's entry; one that a person locked it still keeps.
    const removed = await git.run(repository.path, ['worktree', 'remove', '--force', '--', workdir], {
      filters_off: false,
    });
    if ((await removeFolder(context, workdir, false)).left === 'full') return complaint(removed);
    const left = (await listWorktrees(git, repository)).some(({ path }) => path === workdir);
    if (left) await discard(context, repository, workdir);
  }
  if (branch) await dropBranch(git, repository, branch, base);
  return null;
}

/** Git's record of this very worktree; killed early, git has not yet written the branch into it. */
async function ownEntry(
  git: Git,
  repository: Repository,
  workdir: string,
  branch: string | null,
): Promise<WorktreeEntry | undefined> {
  const entries = await listWorktrees(git, repository);
  return entries.find((each) => each.path === workdir && (each.branch === branch || each.half_made));
}

function clearKilled(
  context: JobContext,
  { common_dir }: Repository,
  workdir: string,
  branch: string | null,
): Promise<void> {
  return clearHalfMade({ common_dir, workdir, branch, removeTree: (path) => mustRemove(context, path) });
}

/**
 * Throws a worktree's folder and git's record of it away. Git goes first: it removes the record even where the folder has
 * to stay, because it is mounted here. What it refuses (a folder whose link is gone) goes without it.
 */
async function discard(
  context: JobContext,
  { path, common_dir }: Repository,
  workdir: string,
): Promise<void> {
  await context.git.run(path, ['worktree', 'remove', '-f', '-f', '--', workdir], { filters_off: false });
  await mustRemove(context, workdir);
  const records = join(common_dir, 'worktrees');
  for (const name of await readdir(records).catch(() => [])) {
    const pointer = await readFile(join(records, name, 'gitdir'), 'utf8').catch(() => '');
    if (pointer.trim() === join(workdir, '.git')) await mustRemove(context, join(records, name));
  }
}

/** An empty folder may stay: whoever made it takes it away. */
async function mustRemove(context: JobContext, path: string): Promise<void> {
  const { left, why } = await removeFolder(context, path, true);
  if (left === 'full') throw new Problem('conflict', 'workdir_not_removed', why!);
}

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
