/**
 * Every folder in which worktrees were ever created for agents. The setting only decides where the next one is created.
 * Earlier worktrees stay where they are, still belong to one agent each, and are hidden from all others.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../../base/files.ts';
import { problems } from '../../core/problem.ts';
import { isInside, locate, makeFolders, realRoots } from './paths.ts';
import { isFolderName } from './worktree-names.ts';

const schema = z.array(z.string());

export class WorktreeRoots {
  readonly #path: string;
  readonly #data_dir: string;
  #roots: readonly string[];
  /** The content of the file. */
  #written: readonly string[];
  #writing: Promise<void> = Promise.resolve();

  private constructor(data_dir: string, roots: readonly string[]) {
    this.#path = fileIn(data_dir);
    this.#data_dir = data_dir;
    this.#roots = roots;
    this.#written = roots;
  }

  /** Throws if the list exists but cannot be read, because worktrees would then be visible to other agents. */
  static async open(data_dir: string): Promise<WorktreeRoots> {
    const text = await readFile(fileIn(data_dir), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    return new WorktreeRoots(data_dir, text === null ? [] : schema.parse(JSON.parse(text)));
  }

  /** Returns real, absolute paths, which may no longer exist. Omits paths in folders that all agents share now. */
  async outsideShared(safe_paths: readonly string[]): Promise<string[]> {
    if (this.#roots.length === 0) return [];
    const shared = await realRoots(safe_paths);
    return this.#roots.filter((root) => !shared.some((safe) => isInside(safe, root)));
  }

  /** The recorded folders that exist and are not empty. */
  async inUse(): Promise<string[]> {
    const entries = await Promise.all(this.#roots.map((root) => readdir(root).catch(() => [])));
    return this.#roots.filter((_, n) => entries[n]!.length > 0);
  }

  /**
   * Records a real path and resolves when it is on disk. Call it before the first worktree is created there.
   * Idempotent.
   */
  async record(root: string): Promise<void> {
    if (!this.#roots.includes(root)) this.#roots = [...this.#roots, root];
    this.#writing = this.#writing.catch(() => {}).then(() => this.#write());
    await this.#writing;
  }

  /**
   * Records a configured folder if it contains worktrees from before this list was kept, or from when all agents shared
   * the folder. Call it before the setting can change. Idempotent.
   */
  async recordIfUsed(root: string, safe_paths: readonly string[]): Promise<void> {
    const located = await locate(root);
    if (located === null || located.missing.length > 0) return;
    const { path } = located;
    // Folders inside the data directory are hidden together with it.
    const hidden_or_shared = await realRoots([this.#data_dir, ...safe_paths]);
    if (hidden_or_shared.some((folder) => isInside(folder, path))) return;
    const names = await readdir(path).catch(() => []);
    if (names.some(isFolderName)) await this.record(path);
  }

  /** Whether worktrees were ever created in the folder. */
  async wasUsed(root: string): Promise<boolean> {
    const located = await locate(root);
    return located !== null && this.#roots.includes(located.path);
  }

  async #write(): Promise<void> {
    const roots = this.#roots;
    if (this.#written === roots) return;
    await writeFileAtomic(this.#path, `${JSON.stringify(roots)}\n`);
    this.#written = roots;
  }
}

/**
 * Creates a missing folder and its missing parents, because a sandbox can hide only what exists when an agent starts.
 * The folder belongs to the service's user. Idempotent. Throws `workdir_not_safe`, `workdir_not_a_directory` or
 * `workdir_not_made`.
 */
export async function createRoot(root: string, { traversable }: { traversable: boolean }): Promise<void> {
  const located = await locate(root);
  if (located === null) throw problems.workdirNotSafe();
  if (located.missing.length > 0) await makeFolders(located, { mode: traversable ? 0o755 : 0o700 });
}

function fileIn(data_dir: string): string {
  return join(data_dir, 'worktree-roots.json');
}
