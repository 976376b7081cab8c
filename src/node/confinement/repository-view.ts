/**
 * The part of a worktree's repository that programs in the sandbox see. Agents that share a repository must not be able
 * to make git run programs for each other.
 */
import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { firstNames } from '../../base/files.ts';
import { isInside, realRoots } from '../folders/paths.ts';
import { isAgentsOwn, repositoryOf } from '../folders/repository-link.ts';
import { limits } from '../limits.ts';
import type { HeldFolder } from './held-folder.ts';
import { type Mount, mountsWithoutLinks } from './mounts.ts';
import type { SandboxOptions } from './options.ts';

/**
 * The parts of its repository that a worktree writes to. Writing to any other part could make git run programs for
 * others.
 */
const GIT_SHARED = ['objects', 'refs', 'lfs'];
/** Git follows links when it appends to reflogs, so worktrees do not share reflogs. */
const GIT_PRIVATE = ['logs', 'worktrees'];
/** Git replaces this file when it packs references. A mount of the file would keep showing the old one. */
const GIT_REPLACED = 'packed-refs';
/** Where an agent's view of a repository contains the repository itself, read-only. */
const GIT_ITSELF = '.svc';

/**
 * Mounts for the parts of a repository that a program in its worktree may see or write to; none if the folder has no
 * repository that it may use. An agent can change the link in its folder, so the link is valid only if the repository
 * has a record of this worktree. Git creates lock files beside the files it changes. So an empty folder replaces the
 * repository's folder, and everything is mounted in it; what an agent adds there is private to its session. `hold` is
 * called with each folder that agents could replace.
 */
export async function repositoryMounts(
  options: SandboxOptions,
  workdir: HeldFolder,
  hold: (path: string) => Promise<unknown>,
): Promise<Mount[]> {
  const found = await repositoryOf(workdir);
  if (!found) return [];
  const { common_dir, record } = found;
  const roots = await realRoots([...options.repo_roots(), ...options.writable()]);
  if (!roots.some((root) => isInside(root, common_dir))) return [];
  const made = await realRoots([options.data_dir, ...(await options.worktree_roots())]);
  if (await isAgentsOwn(common_dir, [workdir.path, ...made])) return [];
  const names = await firstNames(common_dir, limits.git_folder_entries_max);
  const paths = (wanted: (name: string) => boolean) =>
    names.filter(wanted).map((name) => join(common_dir, name));
  const special = [...GIT_SHARED, ...GIT_PRIVATE, GIT_REPLACED];
  const itself = join(common_dir, GIT_ITSELF);
  const shared = await mountsWithoutLinks(
    paths((name) => GIT_SHARED.includes(name)),
    'write',
  );
  const emptied = await mountsWithoutLinks(
    paths((name) => GIT_PRIVATE.includes(name)),
    'empty',
  );
  const seen = await mountsWithoutLinks(
    paths((name) => !special.includes(name)),
    'read_only',
  );
  for (const { path } of seen) if ((await lstat(path)).isDirectory()) await hold(path);
  for (const path of [record, ...shared.map((mount) => mount.path)]) await hold(path);
  return [
    { path: common_dir, kind: 'empty' },
    ...seen,
    ...emptied,
    { path: itself, kind: 'read_only', from: common_dir },
    ...emptied.map(({ path }) => ({
      path: join(itself, basename(path)),
      kind: 'empty' as const,
      from: path,
    })),
    { path: join(common_dir, GIT_REPLACED), kind: 'link', from: join(itself, GIT_REPLACED) },
    ...shared,
    { path: record, kind: 'write' },
  ];
}

/** Mounts for a whole repository: writable, except for files that git would run or read settings from. */
export async function wholeRepository(common_dir: string): Promise<Mount[]> {
  const guarded = ['hooks', 'config', 'config.worktree', 'modules', 'info'];
  return [
    { path: common_dir, kind: 'write' },
    ...(await mountsWithoutLinks(
      guarded.map((name) => join(common_dir, name)),
      'read_only',
    )),
  ];
}
