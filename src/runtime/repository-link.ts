/**
 * From a worktree's folder to its repository. The folder is an agent's, so the link in it proves nothing: it counts only
 * where the repository has a record of this very worktree. Whatever is read here is small, plain, and not waited for.
 */
import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { limits } from '../base/limits.ts';
import type { HeldFolder } from './held-folder.ts';

export interface RepositoryLink {
  /** Real path of the folder with objects and refs, which all worktrees share. */
  common_dir: string;
  /** Real path of the repository's record of this worktree. */
  record: string;
}

/** Null for a folder that is no worktree, or that no repository knows. */
export async function repositoryOf(workdir: HeldFolder): Promise<RepositoryLink | null> {
  const link = await readLink(join(workdir.fd_path, '.git'));
  const named = /^gitdir: (\/.*)$/m.exec(link)?.[1];
  const record = named && (await realpath(named).catch(() => null));
  if (!record || basename(dirname(record)) !== 'worktrees') return null;
  const back = (await readLink(join(record, 'gitdir'))).trim();
  if (back !== join(workdir.path, '.git')) return null;
  return { common_dir: dirname(dirname(record)), record };
}

/** Empty for what is absent, no plain file, or long. */
async function readLink(path: string): Promise<string> {
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
