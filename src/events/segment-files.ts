/** Segments as files, one each: `{agent_num}/{name}.seg` in a folder. */
import { mkdir, open, readdir, rm, statfs, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makePrivateFolder, syncFolder, writeFileAtomic } from '../base/files.ts';
import type { Store } from '../store/store.ts';
import { limits } from './limits.ts';
import { segmentPaths } from './queries/segments.ts';
import {
  type OpenSegment,
  type PackedSegment,
  type SegmentName,
  type SegmentStorage,
  unpackBlock,
} from './segment.ts';

export class SegmentFiles implements SegmentStorage {
  readonly #store: Pick<Store, 'read'>;
  readonly #folder: string;

  constructor(store: Pick<Store, 'read'>, folder: string) {
    this.#store = store;
    this.#folder = folder;
  }

  async open({ path }: SegmentName): Promise<OpenSegment | null> {
    try {
      const file = await open(join(this.#folder, path), 'r');
      return {
        async read(block) {
          const packed = Buffer.allocUnsafe(block.bytes);
          const { bytesRead } = await file.read(packed, 0, block.bytes, block.at);
          return bytesRead < block.bytes ? null : unpackBlock(packed, block);
        },
        close: () => file.close(),
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Files never use more than a share of the disk. */
  async bytesMax(): Promise<number> {
    const disk = await statfs(this.#folder).catch(() => null);
    return disk ? disk.blocks * disk.bsize * limits.retention_disk_share : Number.POSITIVE_INFINITY;
  }

  /** The worker has written the file. */
  async store(): Promise<void> {}

  async isComplete(): Promise<boolean> {
    return true;
  }

  async delete({ path }: SegmentName): Promise<void> {
    await unlink(join(this.#folder, path)).catch(() => {});
  }

  deleteOf(agent_num: number): Promise<void> {
    return rm(join(this.#folder, String(agent_num)), { recursive: true, force: true });
  }

  async deleteOrphans(): Promise<void> {
    await makePrivateFolder(this.#folder);
    const known = new Set(await this.#store.read(segmentPaths));
    for (const entry of await readdir(this.#folder, { recursive: true, withFileTypes: true }).catch(
      () => [],
    )) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      if (!known.has(path.slice(this.#folder.length + 1))) await unlink(path).catch(() => {});
    }
  }
}

/** Writes a segment's file in the folder of all segments. */
export async function writeSegmentFile(folder: string, { path, packed }: PackedSegment): Promise<void> {
  const file = join(folder, path);
  if (await mkdir(dirname(file), { recursive: true, mode: 0o700 })) await syncFolder(folder);
  await writeFileAtomic(file, Buffer.concat(packed));
}
