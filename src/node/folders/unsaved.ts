/** Finds work in a worktree that exists nowhere else: changes, untracked files, work in submodules, commits. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../limits.ts';
import type { Git, GitPlace } from './git.ts';
import { commitOrNull } from './repository.ts';
import { indexMarks, withUnmarkedIndex } from './unmarked-index.ts';

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
  const marks = await indexMarks(git, path);
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
  if (await hasSubmodule(git, path)) reasons.push('submodules');
  return reasons;
}

/** True if a submodule is checked out, because its contents are not examined, or if that cannot be determined. */
async function hasSubmodule(git: Git, path: string): Promise<boolean> {
  const staged = await git.run(path, ['ls-files', '--stage', '-z', '--', ':(top)'], {
    filters_off: false,
    output_bytes_max: limits.git_index_bytes_max,
  });
  if (staged.code !== 0 || staged.truncated) return true;
  for (const entry of staged.stdout.toString().split('\0')) {
    if (!entry.startsWith('160000 ')) continue;
    const folder = entry.slice(entry.indexOf('\t') + 1);
    if (await lstat(join(path, folder, '.git')).catch(() => null)) return true;
  }
  return false;
}

/** The number of commits that would be lost without `branch`; with `with_head`, also without HEAD. */
export async function unsavedCommits(
  git: Git,
  place: GitPlace,
  { branch, base, with_head }: { branch: string | null; base: string | null; with_head: boolean },
): Promise<number> {
  const tips = [
    with_head ? await commitOrNull(git, place, 'HEAD') : null,
    branch ? await commitOrNull(git, place, `refs/heads/${branch}`) : null,
  ].filter((tip) => tip !== null);
  if (tips.length === 0) return 0;
  const known_base = base && /^[0-9a-f]{40,64}$/.test(base) ? await commitOrNull(git, place, base) : null;
  const count = await git.output(
    place,
    [
      'rev-list',
      '--count',
      ...tips,
      '--not',
      '--remotes',
      '--tags',
      ...(branch ? [`--exclude=${branch}`] : []),
      '--branches',
      ...(known_base ? [known_base] : []),
    ],
    { filters_off: false },
  );
  return Number(count.toString().trim());
}
