/**
 * Segment files: sealed events as the frames that clients get, in zstd blocks that verify themselves. The index of a
 * segment's blocks is kept in its row, so that a reader goes straight to the block it needs.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';

/** Room at the end, so that the decoder needs no second round to see that it is done. */
const SPARE_BYTES = 1024;

/** A run of blocks never holds a hole: `first_seq` is the one before's `last_seq` + 1. */
export interface Block {
  first_seq: number;
  last_seq: number;
  /** Place and length in the file. */
  at: number;
  bytes: number;
  raw_bytes: number;
  runs: Run[];
}

/** Output of one stream of a session within a block, byte by byte without a gap. */
export interface Run {
  session_num: number;
  stream: number;
  /** The first event of the run. */
  seq: number;
  from: number;
  to: number;
}

/** The index as it is stored in the segment's row. */
export function parseBlocks(bytes: Uint8Array): Block[] {
  return JSON.parse(Buffer.from(bytes).toString()) as Block[];
}

export function blockIndex(blocks: readonly Block[]): Uint8Array {
  return Buffer.from(JSON.stringify(blocks));
}

/** Null when the file is gone. */
export async function openSegment(folder: string, path: string): Promise<FileHandle | null> {
  try {
    return await open(join(folder, path), 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** The block's frames; null when it is damaged. */
export async function readBlock(file: FileHandle, block: Block): Promise<Buffer | null> {
  const packed = Buffer.allocUnsafe(block.bytes);
  const { bytesRead } = await file.read(packed, 0, block.bytes, block.at);
  if (bytesRead < block.bytes) return null;
  try {
    // At once: a block takes a fraction of a millisecond, and a third of what it costs through the thread pool.
    return zstdDecompressSync(packed, { chunkSize: block.raw_bytes + SPARE_BYTES });
  } catch {
    return null;
  }
}
