/** The files of segments as rows of `segment_blocks`, for a move between the kinds of databases. */
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize } from 'node:path';
import { syncFolder } from '../base/files.ts';
import type { RecordedSegment, SegmentBlocks } from '../store/transfer/sqlite.ts';
import type { Row } from '../store/transfer/tables.ts';
import { parseBlocks } from './segment.ts';

export class SegmentFileBlocks implements SegmentBlocks {
  readonly #folder: string;
  /** The file that is being written. */
  #writing: { path: string; file: FileHandle } | null = null;
  /** Folders with new files. */
  readonly #folders = new Set<string>();

  /** `folder`: of all segments. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Leaves out blocks that are missing, whose events cannot be read in the original either. */
  async *batches(segments: Iterable<RecordedSegment>): AsyncGenerator<readonly Row[]> {
    for (const { agent_num, path, blocks } of segments) {
      const file = await open(this.#pathOf(path), 'r').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      });
      if (file === null) continue;
      try {
        for (const { at, bytes } of parseBlocks(blocks)) {
          const data = new Uint8Array(bytes);
          const { bytesRead } = await file.read(data, 0, bytes, at);
          // Where a block is missing, a copy has a hole.
          const is_complete = bytesRead === bytes && data.some((byte) => byte !== 0);
          if (is_complete) yield [[agent_num, path, at, data]];
        }
      } finally {
        await file.close();
      }
    }
  }

  async insert(rows: readonly Row[]): Promise<void> {
    for (const [, path, at, data] of rows as readonly [number, string, number, Uint8Array][]) {
      const file = await this.#fileOf(path);
      await file.write(data, 0, data.length, at);
    }
  }

  async flush(): Promise<void> {
    await this.#finishFile();
    if (this.#folders.size > 0) await syncFolder(this.#folder);
    for (const folder of this.#folders) await syncFolder(folder);
  }

  async #fileOf(path: string): Promise<FileHandle> {
    if (this.#writing?.path === path) return this.#writing.file;
    await this.#finishFile();
    const full_path = this.#pathOf(path);
    await mkdir(dirname(full_path), { recursive: true, mode: 0o700 });
    this.#folders.add(dirname(full_path));
    const file = await open(full_path, 'wx', 0o600);
    this.#writing = { path, file };
    return file;
  }

  async #finishFile(): Promise<void> {
    const written = this.#writing;
    this.#writing = null;
    await written?.file.sync().finally(() => written.file.close());
  }

  #pathOf(path: string): string {
    if (isAbsolute(path) || normalize(path).startsWith('..')) {
      throw new Error(`the segment ${path} is outside the folder of all segments`);
    }
    return join(this.#folder, path);
  }
}
