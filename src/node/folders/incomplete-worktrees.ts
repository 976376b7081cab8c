/**
 * Removes what `git worktree add` leaves behind if it is killed, for example when the machine stops or a checkout times
 * out. Git does not clean up: it leaves the record "locked", and a record with missing files makes every later
 * `worktree` command in that repository fail. Only records of this service's worktrees are changed.
 */
import { lstat, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { limits } from '../limits.ts';
import { readShort } from './repository-link.ts';

/** The end of the names of derived workdirs. Git adds a digit to a record's name if the name is taken. */
const DERIVED_NAME = /-agt_[a-z0-9]+$/;

export interface WorktreeLocation {
  common_dir: string;
  workdir: string;
  /** Deletes a folder; throws if anything remains. */
  removeTree: (path: string) => Promise<void>;
}

/**
 * Removes the incomplete record of a worktree, and old incomplete records of other agents. The caller holds the
 * repository's queue, so the service runs no other git command in the repository. `owned_by_agent`: the folder is known to
 * belong to the agent. Agents can write records, so the contents of a folder are deleted only if it belongs to the
 * agent and its own link names the record, or if there is nothing but an empty link. Idempotent.
 */
export async function clearIncomplete({
  common_dir,
  workdir,
  branch,
  owned_by_agent,
  removeTree,
}: WorktreeLocation & { branch: string | null; owned_by_agent: boolean }): Promise<void> {
  // The branch belongs to one agent, so the process that locked it must have ended.
  if (branch) await rm(join(common_dir, 'refs/heads', `${branch}.lock`), { force: true });
  const records = join(common_dir, 'worktrees');
  for (const name of await readdir(records).catch(() => [])) {
    const record = join(records, name);
    const locked = await text(record, 'locked');
    if (locked?.match(/^(initializing\s*)?$/) == null) continue;
    const own = name.replace(/\d*$/, '') === basename(workdir).replace(/\d*$/, '');
    const gitdir = await text(record, 'gitdir');
    const written = Boolean(gitdir && (await text(record, 'commondir')) && (await text(record, 'HEAD')));
    if (own && gitdir?.trim() === join(workdir, '.git') && locked !== '') {
      const is_begun = (await recordOf(workdir)) === record || (await hasOnlyEmptyLink(workdir));
      if (owned_by_agent && is_begun) await removeTree(workdir);
      await removeTree(record);
    } else if (!written && (own || (DERIVED_NAME.test(name) && (await isOld(record))))) {
      await removeTree(record);
    }
  }
}

/**
 * Removes records of other agents that name this worktree's folder, because git would use the first one it finds. Call
 * it only for derived folders: a person's worktree may be on a disk that is not mounted now. Idempotent.
 */
export async function clearForged({ common_dir, workdir, removeTree }: WorktreeLocation): Promise<void> {
  if (!DERIVED_NAME.test(basename(workdir))) return;
  const own = await recordOf(workdir);
  const records = join(common_dir, 'worktrees');
  for (const name of await readdir(records).catch(() => [])) {
    const record = join(records, name);
    if (record === own || DERIVED_NAME.exec(name)?.[0] === DERIVED_NAME.exec(basename(workdir))?.[0])
      continue;
    const claimed = (await text(record, 'gitdir'))?.trim();
    if (claimed === join(workdir, '.git')) await removeTree(record);
  }
}

/**
 * The record that a worktree's own link names, which may be the record of another worktree; null if there is no link.
 */
export async function recordOf(workdir: string): Promise<string | null> {
  return /^gitdir: (.*)$/m.exec(await readShort(join(workdir, '.git')))?.[1] ?? null;
}

/** True if git was killed between creating the folder's link and writing it, before it checked out any file. */
async function hasOnlyEmptyLink(workdir: string): Promise<boolean> {
  const names = await readdir(workdir).catch(() => []);
  return names.join() === '.git' && (await text(workdir, '.git')) === '';
}

/** The content of a short file; null if it is missing or not a regular file. */
async function text(folder: string, name: string): Promise<string | null> {
  const path = join(folder, name);
  return (await lstat(path).catch(() => null))?.isFile() ? readShort(path) : null;
}

/** False for recent records: another service may be creating a worktree in the same repository right now. */
async function isOld(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => null);
  return stats !== null && Date.now() - stats.mtimeMs > limits.incomplete_worktree_ms;
}
