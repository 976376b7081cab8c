/**
 * Clears away what `git worktree add` leaves behind when it is killed (the machine stops, a checkout takes for ever). Git
 * itself does not: it keeps such a record as "locked", and one whose files were not written yet makes it refuse every
 * later `worktree` command in that repository. Only records of worktrees that this service makes are touched.
 */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { limits } from '../../base/limits.ts';

/** Names that derived workdirs have; git adds a digit to a name that is taken. */
const OURS = /-agt_[a-z0-9]+$/;

export interface HalfMade {
  common_dir: string;
  workdir: string;
  branch: string | null;
  /** Deletes a folder for good. */
  removeTree: (path: string) => Promise<void>;
}

/** Callers hold the repository's queue: no git of ours is at work in it. */
export async function clearHalfMade({ common_dir, workdir, branch, removeTree }: HalfMade): Promise<void> {
  // A branch is one agent's alone, so whoever locked it is dead.
  if (branch) await rm(join(common_dir, 'refs/heads', `${branch}.lock`), { force: true });
  const records = join(common_dir, 'worktrees');
  for (const name of await readdir(records).catch(() => [])) {
    const record = join(records, name);
    if ((await text(record, 'locked'))?.match(/^(initializing\s*)?$/) == null) continue;
    const own = name.replace(/\d*$/, '') === basename(workdir).replace(/\d*$/, '');
    const gitdir = await text(record, 'gitdir');
    const written = Boolean(gitdir && (await text(record, 'commondir')) && (await text(record, 'HEAD')));
    if (own && gitdir?.trim() === join(workdir, '.git') && (await text(record, 'locked')) !== '') {
      await removeTree(workdir);
      await removeTree(record);
    } else if (!written && (own || (OURS.test(name) && (await isOld(record))))) {
      await removeTree(record);
    }
  }
}

async function text(folder: string, name: string): Promise<string | null> {
  return readFile(join(folder, name), 'utf8').catch(() => null);
}

/** Another service may be making a worktree in the same repository this very moment. */
async function isOld(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => null);
  return stats !== null && Date.now() - stats.mtimeMs > limits.half_made_ms;
}
