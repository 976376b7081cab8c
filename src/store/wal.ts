/**
 * Inspects a write-ahead log before SQLite opens it, because SQLite silently drops every frame that it cannot verify.
 * The index file (`-shm`) is written after each commit and survives a killed process. If it counts more frames within
 * the same boot than can be verified, committed rows are lost and the operator must know. File formats:
 * sqlite.org/walformat.html.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const INDEX_HEADER_BYTES = 48;

export interface WalReport {
  /** Frames up to the last commit that SQLite will accept. */
  valid_frames: number;
  /** Frames that the index counts as committed; null if the index does not belong to this log. */
  committed_frames: number | null;
}

/** Returns null if there is no log to read. */
export function inspectWal(database_path: string): WalReport | null {
  const wal = openOrNull(`${database_path}-wal`);
  if (wal === null) return null;
  try {
    const size = fstatSync(wal).size;
    if (size === 0) return null;
    const index = readIndex(`${database_path}-shm`);
    const header = readAt(wal, 0, HEADER_BYTES);
    const sound = header && readHeader(header);
    if (!header || !sound) return { valid_frames: 0, committed_frames: index?.frames ?? null };
    const valid_frames = countFrames(wal, header, sound);
    const committed_frames = index?.salt.equals(header.subarray(16, 24)) ? index.frames : null;
    return { valid_frames, committed_frames };
  } finally {
    closeSync(wal);
  }
}

interface Header {
  big_endian: boolean;
  page_bytes: number;
  sums: [number, number];
}

function readHeader(header: Buffer): Header | null {
  const magic = header.readUInt32BE(0);
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return null;
  const big_endian = magic === 0x377f0683;
  const sums = checksum(header, 0, 24, big_endian, [0, 0]);
  if (sums[0] !== header.readUInt32BE(24) || sums[1] !== header.readUInt32BE(28)) return null;
  return { big_endian, page_bytes: header.readUInt32BE(8), sums };
}

function countFrames(wal: number, header: Buffer, { big_endian, page_bytes, sums }: Header): number {
  const salt = header.subarray(16, 24);
  const frame_bytes = FRAME_HEADER_BYTES + page_bytes;
  const frame = Buffer.alloc(frame_bytes);
  let committed = 0;
  for (let number = 1; ; number++) {
    const at = HEADER_BYTES + (number - 1) * frame_bytes;
    if (readSync(wal, frame, 0, frame_bytes, at) < frame_bytes) return committed;
    if (!frame.subarray(8, 16).equals(salt)) return committed;
    sums = checksum(frame, 0, 8, big_endian, sums);
    sums = checksum(frame, FRAME_HEADER_BYTES, frame_bytes, big_endian, sums);
    if (sums[0] !== frame.readUInt32BE(16) || sums[1] !== frame.readUInt32BE(20)) return committed;
    if (frame.readUInt32BE(4) !== 0) committed = number;
  }
}

/** The index begins with two copies of its header, in native byte order. They differ during a write. */
function readIndex(path: string): { frames: number; salt: Buffer } | null {
  const file = openOrNull(path);
  if (file === null) return null;
  try {
    const bytes = readAt(file, 0, 2 * INDEX_HEADER_BYTES);
    if (!bytes) return null;
    const first = bytes.subarray(0, INDEX_HEADER_BYTES);
    if (!first.equals(bytes.subarray(INDEX_HEADER_BYTES)) || first[12] !== 1) return null;
    const little = endianness() === 'LE';
    const frames = little ? first.readUInt32LE(16) : first.readUInt32BE(16);
    return { frames, salt: first.subarray(32, 40) };
  } finally {
    closeSync(file);
  }
}

function checksum(
  bytes: Buffer,
  from: number,
  to: number,
  big_endian: boolean,
  [s0, s1]: [number, number],
): [number, number] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const little = !big_endian;
  for (let at = from; at < to; at += 8) {
    s0 = (s0 + view.getUint32(at, little) + s1) >>> 0;
    s1 = (s1 + view.getUint32(at + 4, little) + s0) >>> 0;
  }
  return [s0, s1];
}

function readAt(file: number, at: number, length: number): Buffer | null {
  const bytes = Buffer.alloc(length);
  return readSync(file, bytes, 0, length, at) === length ? bytes : null;
}

function openOrNull(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
