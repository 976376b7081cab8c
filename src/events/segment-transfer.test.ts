/** Files of segments as rows, and rows as files. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Row } from '../store/transfer/tables.ts';
import { blockIndex } from './segment.ts';
import { SegmentFileBlocks } from './segment-transfer.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-segment-transfer-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A segment with blocks of these lengths. */
function segment(agent_num: number, path: string, lengths: readonly number[]) {
  let at = 0;
  const blocks = lengths.map((bytes, i) => {
    const block = { first_seq: i + 1, last_seq: i + 1, at, bytes, raw_bytes: bytes, runs: [] };
    at += bytes;
    return block;
  });
  return { agent_num, path, blocks: blockIndex(blocks) };
}

async function rowsOf(name: string, segments: readonly ReturnType<typeof segment>[]): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const batch of new SegmentFileBlocks(join(folder, name)).batches(segments)) rows.push(...batch);
  return rows;
}

const segments = [segment(1, '1/a.seg', [3, 2]), segment(1, '1/b.seg', [4]), segment(2, '2/a.seg', [1])];

test('copies the blocks of segments, except missing ones', async () => {
  await mkdir(join(folder, 'a/1'), { recursive: true });
  await writeFile(join(folder, 'a/1/a.seg'), Buffer.from([1, 2, 3, 4, 5]));
  // Incomplete. The file of the third segment is missing.
  await writeFile(join(folder, 'a/1/b.seg'), Buffer.from([1]));
  const rows = await rowsOf('a', segments);
  expect(rows).toEqual([
    [1, '1/a.seg', 0, new Uint8Array([1, 2, 3])],
    [1, '1/a.seg', 3, new Uint8Array([4, 5])],
  ]);
  const copy = new SegmentFileBlocks(join(folder, 'b'));
  await copy.insert(rows);
  await copy.flush();
  expect(await readFile(join(folder, 'b/1/a.seg'))).toEqual(Buffer.from([1, 2, 3, 4, 5]));
  expect(await rowsOf('b', segments)).toEqual(rows);
});

test('a block that is missing before others remains missing', async () => {
  const copy = new SegmentFileBlocks(folder);
  const rows = [[1, '1/a.seg', 3, new Uint8Array([4, 5])]];
  await copy.insert(rows);
  await copy.flush();
  expect(await rowsOf('', segments)).toEqual(rows);
});

test('refuses a path outside the folder', async () => {
  const copy = new SegmentFileBlocks(folder);
  await expect(copy.insert([[1, '../a.seg', 0, new Uint8Array(1)]])).rejects.toThrow('outside the folder');
  await expect(rowsOf('', [segment(1, '/etc/passwd', [1])])).rejects.toThrow('outside the folder');
});
