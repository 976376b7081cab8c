/**
 * The steps that create and remove a git worktree. A crash may interrupt any step, and every step can be repeated.
 * There are two separate kinds of steps. Those that write git's records of worktrees run nothing that the repository
 * configures. The checkout may run such programs, but the records are read-only for it.
 */
import { lstat, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { limits } from '../../base/limits.ts';
import { Problem } from '../../core/problem.ts';
import { firstError, type Git } from './git.ts';
import { clearForged, clearIncomplete, recordOf } from './incomplete-worktrees.ts';
import { type JobContext, removeFolder, workdirNotEmpty } from './jobs.ts';
import { commitOrNull, gitDirOf, listWorktrees, type Repository, type WorktreeEntry } from './repository.ts';
import { readShort } from './repository-link.ts';
import { removeSpecialFiles } from './special-files.ts';
import { unsavedCommits, unsavedCommitsReason } from './unsaved.ts';

export interface WorktreePlace {
  repository: Repository;
  workdir: string;
  /** A branch that this service created, or null. No other branch is ever changed. */
  branch: string | null;
}

export interface WorktreeStart {
  /** The commit that is checked out. */
  commit: string;
  /** False: the branch already exists. */
  new_branch: boolean;
}

export interface Drop {
  base: string | null;
  /** Removes the folder and everything in it. */
  force: boolean;
}

/**
 * Cleans up after an earlier attempt. `owned_by_agent`: the folder is known to belong to this agent. The repository does not
 * prove that, because agents can write its records. The contents of any other folder stay, and cause
 * `workdir_not_empty`. Returns `is_complete` if nothing is left to do, whatever an agent has checked out there since, and
 * the commit of the branch if it exists.
 */
export async function prepare(
  context: JobContext,
  { repository, workdir, branch, owned_by_agent }: WorktreePlace & { owned_by_agent: boolean },
): Promise<{ is_complete: boolean; branch_commit: string | null }> {
  const { git } = context;
  if (!owned_by_agent && !(await isVacant(workdir))) throw workdirNotEmpty();
  await git.waitUntilIdle(repository.common_dir);
  await clearObstacles(context, repository, workdir, branch, owned_by_agent);
  const branch_commit = await commitOrNull(git, gitDirOf(repository), `refs/heads/${branch}`);
  const entries = (await listWorktrees(git, repository)).filter(({ path }) => path === workdir);
  const complete = entries.filter(({ incomplete }) => !incomplete);
  const is_complete_entry = complete.some((each) => each.branch === branch);
  const is_complete =
    (is_complete_entry && branch_commit !== null) ||
    (complete.length > 0 && (await isLinked(repository, workdir)));
  if (owned_by_agent && is_complete && (await isFolder(workdir))) return { is_complete, branch_commit };
  const begun = is_complete_entry || entries.some(({ incomplete }) => incomplete);
  if (begun && owned_by_agent && (is_complete_entry || (await isIncomplete(repository, workdir)))) {
    await discard(context, repository, workdir);
  } else if (begun && (await isVacant(workdir))) await forgetRecords(context, repository, workdir);
  return { is_complete: false, branch_commit };
}

/**
 * Creates the branch and the record without checking out files. The record stays locked, as an incomplete one of git
 * is, until `unlock`.
 */
export async function addRecord(
  { git }: JobContext,
  { repository, workdir, branch, commit, new_branch }: WorktreePlace & WorktreeStart,
): Promise<null> {
  const what = new_branch ? ['-b', branch!, '--', workdir, commit] : ['--', workdir, branch!];
  const options = ['--no-checkout', '--no-guess-remote', '--lock', '--reason', 'initializing'];
  await git.output(gitDirOf(repository), ['worktree', 'add', ...options, ...what], {
    filters_off: false,
    lock: repository.common_dir,
  });
  return null;
}

/** Checks out the commit that the worktree starts from. */
export async function checkOut(
  { git }: JobContext,
  { common_dir }: Repository,
  workdir: string,
): Promise<null> {
  await git.output(workdir, ['reset', '--hard', '--no-recurse-submodules', '--quiet'], {
    timeout_ms: limits.git_checkout_timeout_ms,
    lock: common_dir,
  });
  return null;
}

/** Unlocks the record. The worktree is complete from then on. */
export async function unlock(context: JobContext, repository: Repository, workdir: string): Promise<null> {
  const removeTree = (path: string) => requireRemoved(context, path);
  await clearForged({ common_dir: repository.common_dir, workdir, removeTree });
  await context.git.output(gitDirOf(repository), ['worktree', 'unlock', '--', workdir], {
    filters_off: false,
  });
  return null;
}

/** Removes what a failed attempt created. Returns whether that included the branch. */
export async function undo(
  context: JobContext,
  { repository, workdir, branch, commit, new_branch }: WorktreePlace & WorktreeStart,
): Promise<{ deleted_branch: boolean }> {
  const { git } = context;
  await git.waitUntilIdle(repository.common_dir);
  await clearObstacles(context, repository, workdir, branch, true);
  if (await ownEntry(git, repository, workdir, branch)) await discard(context, repository, workdir);
  const name = `refs/heads/${branch}`;
  const git_dir = gitDirOf(repository);
  const deleted_branch = new_branch && (await commitOrNull(git, git_dir, name)) !== null;
  if (deleted_branch) await git.run(git_dir, ['update-ref', '-d', name, commit], { filters_off: false });
  return { deleted_branch };
}

/** Cleans up after git timed out reading a repository. */
export async function clearRepository({ common_dir }: Repository): Promise<null> {
  await removeSpecialFiles(common_dir);
  return null;
}

/**
 * Returns whether git knows a folder as the main worktree, as a linked one, or not at all, and whether the folder exists
 * and somebody locked it.
 */
export async function inspect(
  context: JobContext,
  { repository, workdir, branch }: WorktreePlace,
): Promise<{ known: 'main' | 'linked' | 'no'; exists: boolean; locked: boolean }> {
  // The worktree is complete, whatever a record claims, so its contents must stay.
  await clearObstacles(context, repository, workdir, branch, false);
  const [main, ...linked] = await listWorktrees(context.git, repository);
  const entry = linked.find(({ path }) => path === workdir);
  const known = main?.path === workdir ? 'main' : entry ? 'linked' : 'no';
  return { known, exists: await isFolder(workdir), locked: entry?.locked ?? false };
}

/**
 * Removes the folder and the record, and the branch unless its commits exist nowhere else. Returns why it kept all of
 * them, or only the branch.
 */
export async function drop(
  context: JobContext,
  { repository, workdir, branch, base, force }: WorktreePlace & Drop,
): Promise<{ kept: string | null; branch_kept: string | null }> {
  const { git } = context;
  if (force || !(await isFolder(workdir))) await discard(context, repository, workdir);
  else {
    // Uses force, because git refuses to remove any worktree with a submodule entry. Git still keeps a worktree that a
    // person locked.
    const removed = await git.run(gitDirOf(repository), ['worktree', 'remove', '--force', '--', workdir], {
      filters_off: false,
    });
    if ((await removeFolder(context, workdir, false)).left === 'full')
      return { kept: firstError(removed), branch_kept: null };
    // Git has removed its record, but other agents may have written more that name the folder.
    if (removed.code === 0) await forgetRecords(context, repository, workdir);
    else if (await isListed(git, repository, workdir)) await discard(context, repository, workdir);
  }
  return { kept: null, branch_kept: branch ? await dropBranch(git, repository, branch, base) : null };
}

async function isListed(git: Git, repository: Repository, workdir: string): Promise<boolean> {
  return (await listWorktrees(git, repository)).some(({ path }) => path === workdir);
}

/** Git's record of this worktree. If git was killed early, the record does not name the branch yet. */
async function ownEntry(
  git: Git,
  repository: Repository,
  workdir: string,
  branch: string | null,
): Promise<WorktreeEntry | undefined> {
  const entries = await listWorktrees(git, repository);
  return entries.find((each) => each.path === workdir && (each.branch === branch || each.incomplete));
}

/** Removes what would block git: special files, forged records, and the remains of an interrupted git command. */
async function clearObstacles(
  context: JobContext,
  { common_dir }: Repository,
  workdir: string,
  branch: string | null,
  owned_by_agent: boolean,
): Promise<void> {
  await removeSpecialFiles(common_dir);
  const removeTree = (path: string) => requireRemoved(context, path);
  const found = { common_dir, workdir, branch, owned_by_agent, removeTree };
  await clearForged(found);
  await clearIncomplete(found);
}

/**
 * Deletes a worktree's folder and git's record of it. Git tries first, because it removes the record even if the folder
 * must stay as a mount point. What git refuses to remove (a folder without its link) is deleted directly.
 */
async function discard(context: JobContext, repository: Repository, workdir: string): Promise<void> {
  const remove = ['worktree', 'remove', '-f', '-f', '--', workdir];
  await context.git.run(gitDirOf(repository), remove, { filters_off: false });
  await requireRemoved(context, workdir);
  await forgetRecords(context, repository, workdir);
}

/** Removes git's records of a worktree, but not its folder. */
async function forgetRecords(
  context: JobContext,
  { common_dir }: Repository,
  workdir: string,
): Promise<void> {
  const records = join(common_dir, 'worktrees');
  for (const name of await readdir(records).catch(() => [])) {
    const pointer = await readShort(join(records, name, 'gitdir'));
    // Relative with `worktree.useRelativePaths`.
    if (resolve(records, name, pointer.trim()) === join(workdir, '.git'))
      await requireRemoved(context, join(records, name));
  }
}

/** Removes a folder, or at least its contents. If an empty folder remains, the process that created it removes it. */
async function requireRemoved(context: JobContext, path: string): Promise<void> {
  const { left, why } = await removeFolder(context, path, true);
  if (left === 'full') throw new Problem('conflict', 'workdir_not_removed', why!);
}

/** Deletes a branch unless its commits exist nowhere else. Returns null, or why it kept the branch. */
async function dropBranch(
  git: Git,
  repository: Repository,
  branch: string,
  base: string | null,
): Promise<string | null> {
  const git_dir = gitDirOf(repository);
  const commits = await unsavedCommits(git, git_dir, { branch, base, with_head: false });
  if (commits > 0) return unsavedCommitsReason(commits);
  await git.run(git_dir, ['branch', '-D', '--', branch], { filters_off: false });
  return null;
}

/** Whether the folder and a record of the repository name each other, and git was not killed while it created them. */
async function isLinked(repository: Repository, workdir: string): Promise<boolean> {
  const record = await linkedRecord(repository, workdir);
  if (record === null || (await isIncomplete(repository, workdir))) return false;
  return (await readShort(join(record, 'gitdir'))).trim() === join(workdir, '.git');
}

/** Whether git was killed while it created this worktree. The folder's own link then leads to a record that says so. */
async function isIncomplete(repository: Repository, workdir: string): Promise<boolean> {
  if (await isVacant(workdir)) return true;
  const record = await linkedRecord(repository, workdir);
  return record !== null && (await readShort(join(record, 'locked'))).trim() === 'initializing';
}

/** The record of the repository that the folder's own link names; null if it names none. */
async function linkedRecord({ common_dir }: Repository, workdir: string): Promise<string | null> {
  const record = await recordOf(workdir);
  return record !== null && dirname(record) === join(common_dir, 'worktrees') ? record : null;
}

/** Whether the folder is missing or empty. */
export async function isVacant(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.length === 0;
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isDirectory() ?? false;
}
