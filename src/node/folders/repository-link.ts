/**
 * Finds the repository of a worktree's folder. The folder belongs to an agent, so the link in it proves nothing. It is
 * valid only if the repository has a record of this worktree and agents cannot have forged the repository. Only short
 * regular files are read, without blocking.
 */
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { exists } from '../../base/files.ts';
import { limits } from '../../base/limits.ts';
import type { HeldFolder } from '../confinement/held-folder.ts';
import { isInside } from './paths.ts';

export interface RepositoryLink {
  /** Real path of the folder with objects and refs, which all worktrees share. */
  common_dir: string;
  /** Real path of the repository's record of this worktree. */
  record: string;
}

/** Null if the folder is not a worktree, or its repository has no record of it. */
export async function repositoryOf(workdir: HeldFolder): Promise<RepositoryLink | null> {
  const link = await readShort(join(workdir.fd_path, '.git'));
  const named = /^gitdir: (\/.*)$/m.exec(link)?.[1];
  const record = named && (await realpath(named).catch(() => null));
  if (!record || basename(dirname(record)) !== 'worktrees') return null;
  const back = (await readShort(join(record, 'gitdir'))).trim();
  if (back !== join(workdir.path, '.git')) return null;
  return { common_dir: dirname(dirname(record)), record };
}

/**
 * Whether agents could have forged this repository. They could if it is in one of their folders (`theirs`, real paths),
 * or inside the data of another repository, where worktrees write objects, refs and their records.
 */
export async function isAgentsOwn(common_dir: string, theirs: readonly string[]): Promise<boolean> {
  return theirs.some((folder) => isInside(folder, common_dir)) || isInGitFolder(common_dir);
}

/** Whether a real path, which may not exist, is inside the data of a repository. */
export async function isInGitFolder(path: string): Promise<boolean> {
  for (let above = dirname(path); above !== '/'; above = dirname(above)) {
    const parts = await Promise.all(['HEAD', 'objects'].map((name) => exists(join(above, name))));
    if (parts.every(Boolean)) return true;
  }
  return false;
}

/** Reads a file that contains a path, without following a link. Empty if it is missing, long, or not a regular file. */
export async function readShort(path: string): Promise<string> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const file = await open(path, flags).catch(() => null);
  if (!file) return '';
  try {
    const info = await file.stat();
    return info.isFile() && info.size <= limits.path_bytes_max * 2 ? await file.readFile('utf8') : '';
  } finally {
    await file.close();
  }
}
