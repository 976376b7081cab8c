/** What tests of the event log share. */
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from '../store/store.ts';

/** Whose searches tests make. */
export const SEARCHER = { user_id: 'usr_1', signal: new AbortController().signal };

/** A frame of SSE text, parsed as a client would, for tests. */
export interface Frame {
  id: number;
  event: string;
  data: Record<string, unknown>;
}

/** Returns every complete frame with data. Skips `retry` blocks and an incomplete end. */
export function parseFrames(text: string): Frame[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .filter((block) => block.includes('data: '))
    .map((block) => {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      return { id: Number(fields.id), event: fields.event!, data: JSON.parse(fields.data!) };
    });
}

/** The paths of the segments whose blocks are stored, on any kind of database. */
export async function storedSegments(store: Store, data_dir: string): Promise<string[]> {
  if (store.files) {
    const names = await readdir(join(data_dir, 'log'), { recursive: true }).catch(() => []);
    return names.filter((name) => name.endsWith('.seg')).toSorted();
  }
  const rows = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('segment_blocks').select('path').distinct().orderBy('path')),
  );
  return rows.map(({ path }) => path);
}

/** Replaces all blocks of a segment, or deletes them. */
export async function spoilSegment(
  store: Store,
  data_dir: string,
  path: string,
  data: Uint8Array | null,
): Promise<void> {
  const file = join(data_dir, 'log', path);
  if (store.files) return data ? writeFile(file, data) : rm(file);
  await store.write((tx) =>
    tx.run(
      data
        ? tx.sql.updateTable('segment_blocks').set({ data }).where('path', '=', path)
        : tx.sql.deleteFrom('segment_blocks').where('path', '=', path),
    ),
  );
}

/** Moves the blocks of a segment to another path, where no reader finds them, or back. */
export async function moveSegment(store: Store, data_dir: string, from: string, to: string): Promise<void> {
  if (store.files) return rename(join(data_dir, 'log', from), join(data_dir, 'log', to));
  await store.write((tx) =>
    tx.run(tx.sql.updateTable('segment_blocks').set({ path: to }).where('path', '=', from)),
  );
}
