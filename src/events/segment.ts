/**
 * The format of segments: sealed events in the form of the frames that clients receive, in zstd blocks with checksums.
 * The index of the blocks is in the segment's row, so that a reader can go directly to the block that it needs. SQLite
 * has the blocks in a file for each segment, PostgreSQL in rows.
 */
import { zstdDecompressSync } from 'node:zlib';
import type { Tx } from '../store/store.ts';

/** Extra space for the output, so that the decoder finishes in one round. */
const SPARE_BYTES = 1024;

/** Consecutive blocks have no gap: `first_seq` is the previous `last_seq` + 1. */
export interface Block {
  first_seq: number;
  last_seq: number;
  /** Offset and length in the segment. */
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

/** The name of a segment's blocks. */
export interface SegmentName {
  agent_num: number;
  /** Differs from the path of every other segment. Begins with the agent's number. */
  path: string;
}

/** A segment's compressed blocks, in order. */
export interface PackedSegment extends SegmentName {
  packed: readonly Uint8Array[];
}

/** Reads segments. */
export interface SegmentReader {
  /** Opens a segment; null if it has no blocks. The caller closes it. */
  open(name: SegmentName): Promise<OpenSegment | null>;
}

export interface OpenSegment {
  /** The block's frames; null if the block is missing or damaged. */
  read(block: Block): Promise<Buffer | null>;
  close(): Promise<void>;
}

/** Stores the blocks of segments. All methods are idempotent. */
export interface SegmentStorage extends SegmentReader {
  /** How many bytes all logs may have together, at most, because of where they are. */
  bytesMax(): Promise<number>;
  /** Stores blocks, unless the worker did. They are orphans until the segment is recorded. */
  store(segment: PackedSegment): Promise<void>;
  /** Whether all blocks are still stored. Call this in the transaction that records the segment. */
  isComplete(tx: Tx, segment: PackedSegment): Promise<boolean>;
  /** Deletes the blocks of a segment that is not recorded. */
  delete(name: SegmentName): Promise<void>;
  /** Deletes the blocks of all segments of a deleted agent. */
  deleteOf(agent_num: number): Promise<void>;
  /** Deletes the blocks of segments that were never recorded. Call this before any are stored. */
  deleteOrphans(): Promise<void>;
}

/** Decodes the index from the segment's row. */
export function parseBlocks(bytes: Uint8Array): Block[] {
  return JSON.parse(Buffer.from(bytes).toString()) as Block[];
}

/** Encodes the index for the segment's row. */
export function blockIndex(blocks: readonly Block[]): Uint8Array {
  return Buffer.from(JSON.stringify(blocks));
}

/** Returns the block's frames; null if it is damaged. */
export function unpackBlock(packed: Uint8Array, { raw_bytes }: Block): Buffer | null {
  try {
    // This is synchronous, because decompressing takes a fraction of a millisecond, a third of the cost of using the
    // thread pool.
    return zstdDecompressSync(packed, { chunkSize: raw_bytes + SPARE_BYTES });
  } catch {
    return null;
  }
}
