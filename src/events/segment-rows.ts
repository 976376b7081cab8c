/**
 * Segments as rows of a database, one for each block. Blocks are stored before their segment is recorded, in
 * transactions of limited size: recording locks the head of the agent's log, for which its output waits.
 */
import type { Store, Tx } from '../store/store.ts';
import { limits } from './limits.ts';
import {
  blockData,
  countBlocks,
  deleteBlocks,
  findOrphan,
  insertBlocks,
  someBlocksOf,
} from './queries/segment-blocks.ts';
import { segmentNamed } from './queries/segments.ts';
import {
  type OpenSegment,
  type PackedSegment,
  type SegmentName,
  type SegmentReader,
  type SegmentStorage,
  unpackBlock,
} from './segment.ts';

export class SegmentRowReader implements SegmentReader {
  readonly #store: Pick<Store, 'read'>;

  constructor(store: Pick<Store, 'read'>) {
    this.#store = store;
  }

  async open(name: SegmentName): Promise<OpenSegment> {
    return {
      read: async (block) => {
        const packed = await this.#store.read((reader) => blockData(reader, name, block.at));
        return packed?.length === block.bytes ? unpackBlock(packed, block) : null;
      },
      close: async () => {},
    };
  }
}

export class SegmentRows extends SegmentRowReader implements SegmentStorage {
  readonly #store: Store;

  constructor(store: Store) {
    super(store);
    this.#store = store;
  }

  async bytesMax(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }

  async store({ packed, ...name }: PackedSegment): Promise<void> {
    let at = 0;
    for (let next = 0; next < packed.length; ) {
      const first = next;
      let bytes = 0;
      while (next < packed.length && bytes < limits.segment_write_bytes) bytes += packed[next++]!.length;
      const blocks = packed.slice(first, next);
      const begin = at;
      await this.#store.write((tx) => insertBlocks(tx, { ...name, packed: blocks }, begin));
      at += bytes;
    }
  }

  async isComplete(tx: Tx, segment: PackedSegment): Promise<boolean> {
    return (await countBlocks(tx, segment)) === segment.packed.length;
  }

  delete(name: SegmentName): Promise<void> {
    // Compared in the transaction, because a commit whose answer was lost may still arrive.
    return this.#store.write(async (tx) => {
      if ((await segmentNamed(tx, name)) === undefined) await deleteBlocks(tx, name);
    });
  }

  async deleteOf(agent_num: number): Promise<void> {
    for (;;) {
      const path = await this.#store.read((reader) => someBlocksOf(reader, agent_num));
      if (path === undefined) return;
      await this.#store.write((tx) => deleteBlocks(tx, { agent_num, path }));
    }
  }

  async deleteOrphans(): Promise<void> {
    for (;;) {
      const orphan = await this.#store.read(findOrphan);
      if (orphan === undefined) return;
      await this.delete(orphan);
    }
  }
}
