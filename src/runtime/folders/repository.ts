/**
 * Finds the repository behind a path, and reads what git keeps about its worktrees. A repository whose data lie outside
 * the allowed folders (a `.git` file can point anywhere) is refused.
 */
import { realpath } from 'node:fs/promises';
import type { ExecResult } from '../exec.ts';
import { type Git, gitRefused } from './git.ts';
import { isInside } from './paths.ts';

export interface Repository {
  /** Real path that calls name by `-C`. */
  path: string;
  /** Real path of the folder that holds objects and refs, shared by all worktrees: the key of its queue. */
  common_dir: string;
}

/** Throws a 400 with git's first line for what is not a repository, and `outside()` for one that lies elsewhere. */
export async function openRepository(
  git: Git,
  path: string,
  roots: readonly string[],
  outside: () => Error,
): Promise<Repository> {
  const answer = await git.ask(path, ['rev-parse', '--path-format=absolute', '--git-common-dir'], {
    filters_off: false,
  });
  const common_dir = await realpath(answer.toString().replace(/\n$/, ''));
  if (!roots.some((root) => isInside(root, common_dir))) throw outside();
  return { path, common_dir };
}

/** Whether a folder is in a repository whose working tree lies in one of the real `roots`. What lies elsewhere is not shown. */
export async function isInRepository(git: Git, folder: string, roots: readonly string[]): Promise<boolean> {
  const top = await git.line(folder, ['rev-parse', '--show-toplevel']);
  if (!top) return false;
  return isInside(top, folder) && roots.some((root) => isInside(root, top));
}

/** The commit that `ref` names (null: HEAD). */
export async function commitOf(git: Git, path: string, ref: string | null): Promise<string> {
  const result = await revParse(git, path, ref ?? 'HEAD');
  if (result.code === 0) return result.stdout.toString().trim();
  throw gitRefused(
    result,
    ref === null ? 'worktree_repo has no commits: ' : 'worktree_ref is not a commit: ',
  );
}

/** As `commitOf`, and null when there is none. */
export async function commitOrNull(git: Git, path: string, ref: string): Promise<string | null> {
  const result = await revParse(git, path, ref);
  return result.code === 0 ? result.stdout.toString().trim() : null;
}

function revParse(git: Git, path: string, ref: string): Promise<ExecResult> {
  return git.run(path, ['rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`], {
    filters_off: false,
  });
}

export interface WorktreeEntry {
  path: string;
  /** Short name, or null when detached. */
  branch: string | null;
  /** Git was killed while it made this one. */
  half_made: boolean;
}

/** The repository's worktrees, the main one first. */
export async function listWorktrees(git: Git, repository: Repository): Promise<WorktreeEntry[]> {
  const answer = await git.ask(repository.path, ['worktree', 'list', '--porcelain'], { filters_off: false });
  return answer
    .toString()
    .split('\n\n')
    .filter((block) => block.startsWith('worktree '))
    .map((block) => {
      const lines = block.split('\n');
      const branch = lines.find((line) => line.startsWith('branch refs/heads/'));
      return {
        path: lines[0]!.slice('worktree '.length),
        branch: branch?.slice('branch refs/heads/'.length) ?? null,
        half_made: lines.includes('locked initializing'),
      };
    });
}
