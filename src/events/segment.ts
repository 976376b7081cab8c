/**
 * Segment files: sealed events in the form of the frames that clients receive, in zstd blocks with checksums. The index
 * of the blocks is in the segment's row, so that a reader can go directly to the block that it needs.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';

/** Extra space for the output, so that the decoder finishes in one round. */
const SPARE_BYTES = 1024;

/** Consecutive blocks have no gap: `first_seq` is the previous `last_seq` + 1. */
export interface Block {
  first_seq: number;
  last_seq: number;
  /** Offset and length in the file. */
  at: number;
  bytes: number;
  raw_bytes: number;
  runs: Run[];
}

/** Output of one stream of a session within a block, contiguous. */
export interface Run {
  session_num: number;
  stream: number;
  /** Sequence number of the first event of the run. */
  seq: number;
  /** Range in the stream's output, in bytes; `to` is exclusive. */
  from: number;
  to: number;
}

/** Decodes the index from the segment's row. */
export function parseBlocks(bytes: Uint8Array): Block[] {
  return JSON.parse(Buffer.from(bytes).toString()) as Block[];
}

/** Encodes the index for the segment's row. */
export function blockIndex(blocks: readonly Block[]): Uint8Array {
  return Buffer.from(JSON.stringify(blocks));
}

/** Returns null if the file does not exist. */
export async function openSegment(folder: string, path: string): Promise<FileHandle | null> {
  try {
    return await open(join(folder, path), 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Returns the block's frames; null if the block is damaged. */
export async function readBlock(file: FileHandle, block: Block): Promise<Buffer | null> {
  const packed = Buffer.allocUnsafe(block.bytes);
  const { bytesRead } = await file.read(packed, 0, block.bytes, block.at);
  if (bytesRead < block.bytes) return null;
  try {
    // This is synchronous, because decompressing takes a fraction of a millisecond, a third of the cost of using the
    // thread pool.
    return zstdDecompressSync(packed, { chunkSize: block.raw_bytes + SPARE_BYTES });
  } catch {
    return null;
  }
}
