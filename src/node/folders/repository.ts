/**
 * Finds the repository of a path, and reads git's records of its worktrees. A repository whose data is outside the
 * allowed folders is rejected, because a `.git` file can point anywhere.
 */
import { realpath } from 'node:fs/promises';
import { limits } from '../limits.ts';
import type { ExecResult } from '../processes/exec.ts';
import { type Git, type GitPlace, gitRefused } from './git.ts';
import { isInside } from './paths.ts';

/** Git's exit code for an unknown option. */
const USAGE = 129;

export interface Repository {
  /** Real path of the named folder, whose `.git` an agent may change at any time. */
  path: string;
  /** Real path of the folder with objects and refs, which all worktrees share; the key of the repository's queue. */
  common_dir: string;
}

/** The folder in which git must run to change the repository. A change of `.git` in the meantime has no effect. */
export function gitDirOf({ common_dir }: Pick<Repository, 'common_dir'>): GitPlace {
  return { git_dir: common_dir };
}

/**
 * Throws `git_refused` if the path is not in a repository, and `outside()` if the repository is not in one of the real
 * `roots`.
 */
export async function openRepository(
  git: Git,
  path: string,
  roots: readonly string[],
  outside: () => Error,
): Promise<Repository> {
  const answer = await git.output(path, ['rev-parse', '--path-format=absolute', '--git-common-dir'], {
    filters_off: false,
    timeout_ms: limits.git_lookup_timeout_ms,
  });
  const common_dir = await realpath(answer.toString().replace(/\n$/, ''));
  if (!roots.some((root) => isInside(root, common_dir))) throw outside();
  return { path, common_dir };
}

/** Whether a folder is in a repository whose working tree is in one of the real `roots`. */
export async function isInRepository(git: Git, folder: string, roots: readonly string[]): Promise<boolean> {
  const top = await git.lineOrNull(folder, ['rev-parse', '--show-toplevel']);
  if (!top) return false;
  return isInside(top, folder) && roots.some((root) => isInside(root, top));
}

/** The commit that `ref` names; null means HEAD. Throws `git_refused` if there is no such commit. */
export async function commitOf(git: Git, place: GitPlace, ref: string | null): Promise<string> {
  const result = await revParse(git, place, ref ?? 'HEAD');
  if (result.code === 0) return result.stdout.toString().trim();
  throw gitRefused(
    result,
    ref === null ? 'worktree_repo has no commits: ' : 'worktree_ref is not a commit: ',
  );
}

/** The commit that `ref` names; null if there is no such commit. Throws `git_interrupted` if a signal ended git. */
export async function commitOrNull(git: Git, place: GitPlace, ref: string): Promise<string | null> {
  const result = await revParse(git, place, ref);
  if (result.code === null) throw gitRefused(result);
  return result.code === 0 ? result.stdout.toString().trim() : null;
}

function revParse(git: Git, place: GitPlace, ref: string): Promise<ExecResult> {
  return git.run(place, ['rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`], {
    filters_off: false,
    timeout_ms: limits.git_lookup_timeout_ms,
  });
}

export interface WorktreeEntry {
  path: string;
  /** Short name, or null when detached. */
  branch: string | null;
  /** Git was killed while it created this worktree. */
  incomplete: boolean;
  /** Somebody locked it with `git worktree lock`. */
  locked: boolean;
}

/** The repository's worktrees, the main one first. */
export async function listWorktrees(git: Git, repository: Repository): Promise<WorktreeEntry[]> {
  const list = ['worktree', 'list', '--porcelain'];
  const call = { filters_off: false, timeout_ms: limits.git_lookup_timeout_ms };
  // A path can contain a newline, and thus lines that look like another worktree.
  const found = await git.run(gitDirOf(repository), [...list, '-z'], call);
  // Git before 2.36 does not know `-z`.
  const is_unknown = found.code === USAGE;
  const answer = is_unknown ? await git.output(gitDirOf(repository), list, call) : found.stdout;
  if (!is_unknown && found.code !== 0) throw gitRefused(found);
  const end = is_unknown ? '\n' : '\0';
  return answer
    .toString()
    .split(end + end)
    .filter((block) => block.startsWith('worktree '))
    .map((block) => {
      const lines = block.split(end);
      const branch = lines.find((line) => line.startsWith('branch refs/heads/'));
      return {
        path: lines[0]!.slice('worktree '.length),
        branch: branch?.slice('branch refs/heads/'.length) ?? null,
        incomplete: lines.includes('locked initializing'),
        locked: lines.some((line) => line === 'locked' || line.startsWith('locked ')),
      };
    });
}
