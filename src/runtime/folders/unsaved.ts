/** Says what of a worktree exists nowhere else: changes, untracked files, submodules' own work, commits. */
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../../base/limits.ts';
import type { Git } from './git.ts';
import { commitOrNull } from './repository.ts';

/**
 * Words for what would be lost with the worktree at `path` and its branch, or null when nothing would. Commits are lost
 * when no remote, no tag, no other branch and not the base holds them.
 */
export async function unsavedWork(
  git: Git,
  path: string,
  branch: string | null,
  base: string | null,
  options: { commits_only?: boolean } = {},
): Promise<string | null> {
  const reasons = options.commits_only ? [] : await unsavedFiles(git, path);
  const commits = await unsavedCommits(git, path, branch, base, !options.commits_only);
  if (commits > 0) {
    reasons.push(`${commits} ${commits === 1 ? 'commit' : 'commits'} on no remote and no other branch`);
  }
  return reasons.length > 0 ? reasons.join(', ') : null;
}

async function unsavedFiles(git: Git, path: string): Promise<string[]> {
  const status = await git.ask(path, [
    'status',
    '--porcelain',
    '-z',
    '--no-renames',
    '--untracked-files=normal',
    '--ignore-submodules=dirty',
  ]);
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

/** True when a submodule is checked out (what is inside it, nobody has looked at), or when that cannot be told. */
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

async function unsavedCommits(
  git: Git,
  path: string,
  branch: string | null,
  base: string | null,
  with_head: boolean,
): Promise<number> {
  const tips = [
    with_head ? await commitOrNull(git, path, 'HEAD') : null,
    branch ? await commitOrNull(git, path, `refs/heads/${branch}`) : null,
  ].filter((tip) => tip !== null);
  if (tips.length === 0) return 0;
  const known_base = base && /^[0-9a-f]{40,64}$/.test(base) ? await commitOrNull(git, path, base) : null;
  const count = await git.ask(
    path,
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
