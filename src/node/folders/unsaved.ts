/** Finds work in a worktree that exists nowhere else: changes, untracked files, work in submodules, commits. */
import { lstat } from 'node:fs/promises';
import type { ExecResult } from '../processes/exec.ts';
import { type Git, type GitPlace, gitRefused } from './git.ts';
import { commitOrNull } from './repository.ts';
import { marksAndSubmodules, withUnmarkedIndex } from './unmarked-index.ts';

/**
 * Returns a message about what would be lost with the worktree at `path` and its branch; null if nothing would. A
 * commit is lost if it is not in a remote branch, a tag, another branch or the base.
 */
export async function unsavedWork(
  git: Git,
  path: string,
  branch: string | null,
  base: string | null,
): Promise<string | null> {
  const reasons = await unsavedFiles(git, path);
  const commits = await unsavedCommits(git, path, { branch, base, with_head: true });
  if (commits > 0) reasons.push(unsavedCommitsReason(commits));
  return reasons.length > 0 ? reasons.join(', ') : null;
}

export function unsavedCommitsReason(commits: number): string {
  return `${commits} ${commits === 1 ? 'commit' : 'commits'} on no remote and no other branch`;
}

async function unsavedFiles(git: Git, path: string): Promise<string[]> {
  const args = [
    ...['status', '--porcelain', '-z', '--no-renames'],
    ...['--untracked-files=normal', '--ignore-submodules=dirty'],
  ];
  const { marks, submodules } = await marksAndSubmodules(git, path);
  const status = await withUnmarkedIndex(git, path, { marks, copy: false }, (index) =>
    git.output(path, args, index === undefined ? {} : { index }),
  );
  const entries = status
    .toString()
    .split('\0')
    .filter((entry) => entry !== '');
  const untracked = entries.filter((entry) => entry.startsWith('??')).length;
  const reasons: string[] = [];
  if (entries.length > untracked) reasons.push('uncommitted changes');
  if (untracked > 0) reasons.push('untracked files');
  // More entries than were read may include submodules.
  if (submodules === null || (await isAnyCheckedOut(path, submodules))) reasons.push('submodules');
  return reasons;
}

/** Whether a submodule is checked out. Its contents are not examined. */
async function isAnyCheckedOut(path: string, submodules: readonly Buffer[]): Promise<boolean> {
  for (const name of submodules) {
    // Not as text, because a name need not be UTF-8.
    const link = Buffer.concat([Buffer.from(`${path}/`), name, Buffer.from('/.git')]);
    if (await lstat(link).catch(() => null)) return true;
  }
  return false;
}

/** The number of commits that would be lost without `branch`; with `with_head`, also without HEAD. */
export async function unsavedCommits(
  git: Git,
  place: GitPlace,
  { branch, base, with_head }: { branch: string | null; base: string | null; with_head: boolean },
): Promise<number> {
  const names = [...(with_head ? ['HEAD'] : []), ...(branch ? [`refs/heads/${branch}`] : [])];
  if (names.length === 0) return 0;
  const known_base = base && /^[0-9a-f]{40,64}$/.test(base) ? base : null;
  const all = await git.run(place, countArgs(names, branch, known_base), { filters_off: false });
  const commits = countIn(all);
  if (commits !== null) return commits;

  // One of the names may have no commit. Only a question about that name alone can tell.
  const tips: string[] = [];
  for (const name of names) {
    const tip = await commitOrNull(git, place, name);
    if (tip !== null) tips.push(tip);
  }
  if (tips.length === 0) return 0;
  const base_commit = known_base && (await commitOrNull(git, place, known_base));
  const existing = await git.run(place, countArgs(tips, branch, base_commit), { filters_off: false });
  const left = countIn(existing);
  if (left === null) throw gitRefused(existing);
  return left;
}

/** Arguments that count the commits of `tips` that are in no remote branch, tag, other branch or the base. */
function countArgs(tips: readonly string[], branch: string | null, base: string | null): string[] {
  const saved = ['--remotes', '--tags', ...(branch ? [`--exclude=${branch}`] : []), '--branches'];
  // With `--`, a file that is named like a tip makes no difference.
  return ['rev-list', '--count', ...tips, '--not', ...saved, ...(base ? [base] : []), '--'];
}

/** Null if git did not count. */
function countIn({ code, stdout }: ExecResult): number | null {
  const text = stdout.toString().trim();
  return code === 0 && /^\d+$/.test(text) ? Number(text) : null;
}
