/**
 * Records for which agent each worktree's folder was created. Agents can write to their folders and to git's records of
 * them, so neither proves who owns a folder. The claims are in the data directory, which no agent can write to.
 */
import { createHash } from 'node:crypto';
import { lstat, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makePrivateFolder, writeFileAtomic } from '../../base/files.ts';

const schema = z.object({
  path: z.string(),
  agent_id: z.string(),
  inode: z.string(),
  /** The commit that the worktree started from. Null for a folder without one, and in claims of older releases. */
  base: z.string().nullable().default(null),
});

type Claim = z.infer<typeof schema>;

export class WorktreeClaims {
  readonly #dir: string;

  constructor(data_dir: string) {
    this.#dir = join(data_dir, 'worktree-claims');
  }

  /**
   * Whether the folder at a real path was created for an agent. False if there is another folder now; null if there is
   * no claim, because an older release created the folder. Throws if the claim exists but cannot be read.
   */
  async isOf(agent_id: string, path: string): Promise<boolean | null> {
    const claim = await this.#claim(path);
    if (claim === null) return null;
    return claim.path === path && claim.agent_id === agent_id && claim.inode === (await inodeOf(path));
  }

  /** The agent for which a folder was last created at a real path, or null. Throws like `isOf`. */
  async agentOf(path: string): Promise<string | null> {
    return (await this.#claim(path))?.agent_id ?? null;
  }

  /**
   * The commit from which the worktree at a real path started; null if it is not known. With `agent_id`, only that of a
   * worktree for this agent. Throws like `isOf`.
   */
  async baseOf(path: string, agent_id?: string): Promise<string | null> {
    const claim = await this.#claim(path);
    const is_other = agent_id !== undefined && claim?.agent_id !== agent_id;
    return is_other ? null : (claim?.base ?? null);
  }

  /**
   * Records a claim and resolves when it is on disk. Call it when the folder exists and is still empty. Idempotent.
   * `base`: see `baseOf`.
   */
  async add(agent_id: string, path: string, base: string | null): Promise<void> {
    await makePrivateFolder(this.#dir);
    const claim: Claim = { path, agent_id, inode: await inodeOf(path), base };
    await writeFileAtomic(this.#file(path), `${JSON.stringify(claim)}\n`);
  }

  /** Deletes the claim on a path. Idempotent. */
  async forget(path: string): Promise<void> {
    await rm(this.#file(path), { force: true });
  }

  async #claim(path: string): Promise<Claim | null> {
    const text = await readFile(this.#file(path), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    return text === null ? null : schema.parse(JSON.parse(text));
  }

  #file(path: string): string {
    return join(this.#dir, `${createHash('sha256').update(path).digest('hex')}.json`);
  }
}

/** The inode number. It omits the device number, which may change at the next boot. Empty if nothing is there. */
async function inodeOf(path: string): Promise<string> {
  const info = await lstat(path, { bigint: true }).catch(() => null);
  return info === null ? '' : String(info.ino);
}
