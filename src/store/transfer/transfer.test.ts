/** Copies of all tables between the databases, in both directions. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { anyRows } from '../../testing/any-rows.ts';
import { createDatabase, execute, type TestDatabase, postgresTest as test } from '../../testing/postgres.ts';
import { messageContains } from '../dialects.ts';
import { PostgresCopy } from '../postgres/copy.ts';
import { openPostgres } from '../postgres/postgres.ts';
import { openSqlite } from '../sqlite.ts';
import type { Store } from '../store.ts';
import { createTargetFile, openSourceFile, type SegmentBlocks, type SqliteCopy } from './sqlite.ts';
import { BLOCKS, type Row, type TransferTable, transferTables } from './tables.ts';
import { type TransferSource, type TransferTarget, transfer } from './transfer.ts';

/** Blocks in memory. */
class MemoryBlocks implements SegmentBlocks {
  readonly rows: Row[] = [];

  async *batches(): AsyncGenerator<readonly Row[]> {
    yield this.rows;
  }

  async insert(rows: readonly Row[]): Promise<void> {
    this.rows.push(...rows);
  }

  async flush(): Promise<void> {}
}

let folder: string;
let database: TestDatabase;
let blocks: MemoryBlocks;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-transfer-'));
  database = await createDatabase();
  blocks = new MemoryBlocks();
});
afterEach(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

function copyAll(source: TransferSource, target: TransferTarget, signal = new AbortController().signal) {
  return transfer({ source, target, own_meta: ['place'], signal, onProgress: () => {} });
}

/** All rows of a table, sorted. */
async function rowsOf(source: TransferSource, table: TransferTable): Promise<string[]> {
  const rows: string[] = [];
  for await (const batch of source.batches(table)) rows.push(...batch.map((row) => JSON.stringify(row)));
  return rows.toSorted();
}

async function everything(source: TransferSource) {
  const tables: Record<string, string[]> = {};
  for (const table of transferTables()) tables[table.name] = await rowsOf(source, table);
  return tables;
}

/** A database with rows in every table, and higher numbers than those of its rows. */
async function filledFile(name: string): Promise<SqliteCopy> {
  const path = join(folder, name);
  const file = createTargetFile(path, blocks);
  for (const [table, rows] of anyRows()) await file.insert(table, rows);
  await file.continueNumbers(new Map([...(await file.lastNumbers()).keys()].map((table) => [table, 1_000])));
  file.finish();
  const [, segments] = [...anyRows()].find(([table]) => table.name === 'segments')!;
  const path_of_segment = String(segments[0]![5]);
  blocks.rows.push(
    [1, path_of_segment, 0, new Uint8Array([1, 2])],
    [1, path_of_segment, 2, new Uint8Array([3])],
  );
  return openSourceFile(path, blocks, silentLog);
}

async function withPostgres<T>(use: (copy: PostgresCopy) => Promise<T>): Promise<T> {
  const copy = await PostgresCopy.open({ url: database.url });
  try {
    return await use(copy);
  } finally {
    await copy.close();
  }
}

test('copies every table to PostgreSQL and back', async () => {
  const original = await filledFile('a.db');
  const expected = await everything(original);
  for (const [table, rows] of Object.entries(expected)) expect(rows.length, table).toBeGreaterThan(0);
  const counts = await withPostgres(async (copy) => {
    expect(await copy.isEmpty()).toBe(true);
    const copied = await copyAll(original, copy);
    expect(await everything(copy)).toEqual(expected);
    await copy.commit('fingerprint');
    return copied;
  });
  expect(counts.get('agents')).toBe(3);
  expect(counts.get(BLOCKS)).toBe(2);
  original.close();

  const blocks_before = [...blocks.rows];
  blocks = new MemoryBlocks();
  const back = createTargetFile(join(folder, 'b.db'), blocks);
  await withPostgres(async (copy) => {
    expect(await copy.isEmpty()).toBe(false);
    expect(await copy.isUnfinishedMove('fingerprint')).toBe(true);
    expect(await copy.isUnfinishedMove('another')).toBe(false);
    const own_meta = ['place', 'move', 'data_dir'];
    await transfer({
      source: copy,
      target: back,
      own_meta,
      signal: AbortSignal.any([]),
      onProgress: () => {},
    });
  });
  expect(blocks.rows).toEqual(blocks_before);
  expect(await everything(back)).toEqual(expected);
  back.finish();
});

async function nextNumbers(store: Store): Promise<number[]> {
  const fact = { ts: 1, kind: 'k', ref: 'r', payload: '{}' };
  const feed = { ts: 1, kind: 'k', owner_id: 'o', record: '{}' };
  return store.write(async (tx) => {
    const inserted = [
      await tx.get(tx.sql.insertInto('facts').values(fact).returning('id')),
      await tx.get(tx.sql.insertInto('feed').values(feed).returning('id')),
    ];
    return inserted.map((row) => row!.id);
  });
}

/** Numbers of messages that contain a word. */
function found(store: Store, word: string): Promise<number> {
  return store.read(async (reader) => {
    const query = reader.sql
      .selectFrom('messages')
      .select('num')
      .where(messageContains(reader, [word], 0));
    return (await reader.all(query)).length;
  });
}

test('numbers continue after the highest one that was ever assigned, and messages can be searched', async () => {
  const original = await filledFile('a.db');
  await withPostgres(async (copy) => {
    await copyAll(original, copy);
    await copy.commit('fingerprint');
  });
  original.close();
  const store = await openPostgres({ url: database.url, log: silentLog });
  expect(await store.settledNumbers('facts')).toEqual({ up_to: 1_000, open: false });
  // A transaction that runs again leaves gaps.
  const next = await nextNumbers(store);
  expect(Math.min(...next)).toBeGreaterThan(1_000);
  expect(await found(store, 'messages')).toBe(3);
  await store.close();

  const back = createTargetFile(join(folder, 'b.db'), new MemoryBlocks());
  await withPostgres((copy) => copyAll(copy, back));
  back.finish();
  const embedded = await openSqlite({ path: join(folder, 'b.db'), log: silentLog });
  expect(await nextNumbers(embedded)).toEqual(next.map((number) => number + 1));
  expect(await found(embedded, 'messages')).toBe(3);
  await embedded.close();
});

test('leaves nothing behind unless it is completed, and can clear an earlier copy', async () => {
  const original = await filledFile('a.db');
  const stop = new AbortController();
  const copying = withPostgres((copy) =>
    transfer({
      ...{ source: original, target: copy, own_meta: [], signal: stop.signal },
      onProgress: ({ table }) => {
        if (table === 'agents') stop.abort();
      },
    }),
  );
  await expect(copying).rejects.toThrow(/abort/);
  await withPostgres(async (copy) => {
    expect(await copy.isEmpty()).toBe(true);
    await copyAll(original, copy);
    await copy.commit('fingerprint');
  });
  await withPostgres(async (copy) => {
    await copy.clear();
    await copyAll(original, copy);
    await copy.commit('fingerprint');
  });
  await expect(execute(database.url, 'DELETE FROM audit')).rejects.toThrow('append-only');
  original.close();
});

test('does not copy the control planes that ran: the other database counts claims anew', async () => {
  const original = await filledFile('a.db');
  original.close();
  const db = new DatabaseSync(join(folder, 'a.db'));
  db.exec(`INSERT INTO planes VALUES ('pln_1', 'old', '127.0.0.1:1', '1.0.0', 1, 1, 1)`);
  db.close();
  const file = await openSourceFile(join(folder, 'a.db'), blocks, silentLog);
  await withPostgres(async (copy) => {
    await copyAll(file, copy);
    await copy.commit('fingerprint');
  });
  file.close();
  expect(await execute(database.url, 'SELECT id FROM planes')).toEqual([]);
});

test('reports a copy that differs', async () => {
  const original = await filledFile('a.db');
  const target = createTargetFile(join(folder, 'b.db'), new MemoryBlocks());
  const insert = target.insert.bind(target);
  target.insert = async (table, rows) => {
    if (table.name !== 'events') return insert(table, rows);
    const changed = rows.map((row, at) => (at === 0 ? [...row.slice(0, -1), new Uint8Array([7])] : row));
    return insert(table, changed);
  };
  await expect(copyAll(original, target)).rejects.toThrow('the copy of table events differs');
  original.close();
  target.close();
});

test('replaces U+0000 in PostgreSQL', async () => {
  const path = join(folder, 'a.db');
  const file = createTargetFile(path, blocks);
  const meta = transferTables().find(({ name }) => name === 'meta')!;
  await file.insert(meta, [['key', 'a\0b']]);
  await withPostgres(async (copy) => {
    await copyAll(file, copy);
    expect(await rowsOf(copy, meta)).toEqual(['["key","a\ufffdb"]']);
  });
  file.close();
});
