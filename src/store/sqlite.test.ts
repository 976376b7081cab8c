import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../base/log.ts';
import { openTestDatabase } from '../testing/empty-sqlite.ts';
import { openReadOnly } from './connection.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import { type FileStore, openSqlite, openSqliteReader } from './sqlite.ts';
import { ForeignWait, NestedTransaction, type Reader, type Tx } from './store.ts';

let folder: string;
let store: FileStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-store-'));
  store = await openTestDatabase(join(folder, 'svc.db'));
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const setMeta = (tx: Tx, key: string, value = '') => tx.run(tx.sql.insertInto('meta').values({ key, value }));
const keysOf = async (reader: Reader) =>
  (await reader.all(reader.sql.selectFrom('meta').select('key').orderBy('key'))).map(({ key }) => key);
const metaKeys = () => store.read(keysOf);

test('reads do not see a write before it is acknowledged', async () => {
  for (let i = 0; i < 20; i++) {
    let acknowledged = i;
    const write = store.write((tx) => setMeta(tx, `${i}`, 'x'.repeat(100_000))).then(() => acknowledged++);
    while (acknowledged === i) {
      const seen = (await metaKeys()).length;
      await new Promise((resolve) => setImmediate(resolve));
      expect(seen).toBeLessThanOrEqual(acknowledged);
    }
    await write;
    expect(await metaKeys()).toHaveLength(i + 1);
  }
});

test('a value is kept until the next commit', async () => {
  let computed = 0;
  const count = () => store.cachedRead('a key', () => `computed ${++computed}`);
  expect(await count()).toBe('computed 1');
  expect(count()).toBe('computed 1');
  await store.write((tx) => setMeta(tx, 'a'));
  expect(await count()).toBe('computed 2');
  expect(count()).toBe('computed 2');
  expect(await store.cachedRead('another key', keysOf)).toEqual(['a']);
});

test('a read that begins while a snapshot is released has one snapshot to its end', async () => {
  const path = join(folder, 'svc.db');
  const reader = new SnapshotReader(openReadOnly(path));
  onTestFinished(() => reader.close());
  await reader.read(keysOf);
  const released = reader.release();
  const keys = reader.read(async (body) => {
    const first = await keysOf(body);
    expect(reader.connection.db.isTransaction).toBe(true);
    return [first, await keysOf(body)];
  });
  await released;
  const [first, second] = await keys;
  expect(second).toEqual(first);
});

test('only the owner can access database files', async () => {
  await store.write((tx) => setMeta(tx, 'a', '1'));
  for (const name of ['svc.db', 'svc.db-wal', 'svc.db-shm']) {
    expect((await stat(join(folder, name))).mode & 0o077).toBe(0);
  }
});

test('a backup is a complete database, and never overwrites a file', async () => {
  await store.write((tx) => setMeta(tx, 'a', '1'));
  const path = join(folder, 'copy.db');
  await store.files.backup(path);
  await expect(store.files.backup(path)).rejects.toThrow('EEXIST');
  const copy = await openSqlite({ path, log: silentLog });
  expect(await copy.read((r) => r.all(r.sql.selectFrom('meta').select('key')))).toHaveLength(1);
  await copy.close();
});

test('a check of a sound database finds no problems', async () => {
  await store.write((tx) => setMeta(tx, 'a', '1'));
  expect(await store.files.check()).toEqual([]);
});

test('vacuum frees the pages of deleted rows', async () => {
  await store.write((tx) => setMeta(tx, 'a', 'x'.repeat(1_000_000)));
  await store.write((tx) => tx.run(tx.sql.deleteFrom('meta')));
  const left = await store.files.vacuum(50);
  expect(left).toBeGreaterThan(0);
  expect(await store.files.vacuum(10_000)).toBe(0);
});

test('cascading deletes use an index', () => {
  const db = new DatabaseSync(join(folder, 'svc.db'), { readOnly: true });
  const query = `
    SELECT tables.name || '.' || keys."from" AS column_name
    FROM sqlite_schema AS tables, pragma_foreign_key_list(tables.name) AS keys
    WHERE tables.type = 'table' AND NOT EXISTS (
      SELECT 1 FROM pragma_index_list(tables.name) AS indexes, pragma_index_info(indexes.name) AS columns
      WHERE columns.seqno = 0 AND columns.name = keys."from"
    ) AND NOT EXISTS (
      SELECT 1 FROM pragma_table_info(tables.name) AS own WHERE own.pk = 1 AND own.name = keys."from"
    )`;
  const loose = db.prepare(query).all();
  db.close();
  expect(loose).toEqual([]);
});

test('one body writes at a time, in the order of the calls', async () => {
  let order: string[] = [];
  await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      store.write(async (tx) => {
        order = order.filter((step) => !step.startsWith(name));
        for (const step of [1, 2, 3]) {
          order.push(`${name}${step}`);
          await setMeta(tx, `${name}${step}`);
        }
      }),
    ),
  );
  expect(order.join(' ')).toBe('a1 a2 a3 b1 b2 b3 c1 c2 c3');
});

test('a transaction body cannot call cachedRead', async () => {
  await store.cachedRead('keys', keysOf);
  await expect(store.write(() => store.cachedRead('keys', keysOf))).rejects.toBeInstanceOf(NestedTransaction);
});

test('a group that failed runs the bodies of its writes again', async () => {
  let runs = 0;
  const results = await Promise.allSettled([
    store.write(async (tx) => {
      runs++;
      await setMeta(tx, 'a');
    }),
    store.write((tx) => tx.run(tx.sql.insertInto('audit').values({ id: 1 } as never))),
    // Fails when the group commits.
    store.write(async (tx) => {
      await tx.run({ compile: () => ({ sql: 'PRAGMA defer_foreign_keys = ON', parameters: [] }) } as never);
      await tx.run(tx.sql.insertInto('heads').values({ agent_num: 77, last_seq: 0, first_seq: 1, bytes: 0 }));
    }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(runs).toBeGreaterThan(1);
  expect(await metaKeys()).toEqual(['a']);
});

test('the reader of another thread has the same rules', async () => {
  await store.write((tx) => setMeta(tx, 'a'));
  const reader = openSqliteReader(store.files.path);
  try {
    expect(await reader.read(keysOf)).toEqual(['a']);
    await expect(reader.read(() => sleep(0))).rejects.toBeInstanceOf(ForeignWait);
    await store.write((tx) => setMeta(tx, 'b'));
    expect(await reader.read(keysOf)).toEqual(['a', 'b']);
  } finally {
    await reader.close();
  }
});
