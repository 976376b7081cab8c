/**
 * Records for which agent each worktree's folder was created. Agents can write to their folders and to git's records of
 * them, so neither proves who owns a folder. The claims are in the data directory, which no agent can write to.
 */
import { createHash } from 'node:crypto';
import { lstat, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makePrivateFolder, writeFileAtomic } from '../../base/files.ts';

const schema = z.object({ path: z.string(), agent_id: z.string(), inode: z.string() });

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

  /** Records a claim and resolves when it is on disk. Call it when the folder exists and is still empty. Idempotent. */
  async add(agent_id: string, path: string): Promise<void> {
    await makePrivateFolder(this.#dir);
    const inode = await inodeOf(path);
    await writeFileAtomic(this.#file(path), `${JSON.stringify({ path, agent_id, inode })}\n`);
  }

  /** Deletes the claim on a path. Idempotent. */
  async forget(path: string): Promise<void> {
    await rm(this.#file(path), { force: true });
  }

  async #claim(path: string): Promise<z.infer<typeof schema> | null> {
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
