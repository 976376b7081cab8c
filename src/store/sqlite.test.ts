import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { silentLog } from '../base/log.ts';
import { openSqlite } from './sqlite.ts';
import { type Reader, StaleBatch, type Store, type Tx } from './store.ts';
import { addAgent, addSession, batch } from './testing.ts';

let folder: string;
let store: Store;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-store-'));
  store = await openSqlite({ path: join(folder, 'svc.db'), log: silentLog });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const setMeta = (tx: Tx, key: string, value: string) =>
  tx.run(tx.sql.insertInto('meta').values({ key, value }));
const metaKeys = () =>
  store.read(async (r) =>
    (await r.all(r.sql.selectFrom('meta').select('key').orderBy('key'))).map((row) => row.key),
  );

test('reads see a write once it is acknowledged', async () => {
  await store.write((tx) => setMeta(tx, 'a', '1'));
  expect(await metaKeys()).toEqual(['a']);
});

test('a visit of rows ends early or with an error', async () => {
  for (const key of ['a', 'b', 'c']) await store.write((tx) => setMeta(tx, key, '1'));
  const keysVisited = (visit: (key: unknown) => boolean) =>
    store.read(async (reader) => {
      const keys: unknown[] = [];
      await reader.each(reader.sql.selectFrom('meta').select('key').orderBy('key'), ([key]) => {
        keys.push(key);
        return visit(key);
      });
      return keys;
    });
  expect(await keysVisited(() => true)).toEqual(['a', 'b', 'c']);
  expect(await keysVisited((key) => key !== 'b')).toEqual(['a', 'b']);
  const failing = keysVisited(() => {
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await keysVisited(() => true)).toEqual(['a', 'b', 'c']);
});

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

test('a computed value is remembered until the next commit', async () => {
  let computed = 0;
  const count = (reader: Reader) => reader.memo('a key', () => `computed ${++computed}`);
  expect(await store.read(count)).toBe('computed 1');
  expect(await store.read(count)).toBe('computed 1');
  const [first, second] = await store.write(async (tx) => [await count(tx), await count(tx)]);
  expect(second).not.toBe(first);
  const third = await store.read(count);
  expect(third).not.toBe(second);
  expect(await store.read(count)).toBe(third);
});

test('a value that cannot be computed is not remembered', async () => {
  const fail = () => {
    throw new Error('no');
  };
  await expect(store.read((reader) => reader.memo('a key', fail))).rejects.toThrow('no');
  expect(await store.read((reader) => reader.memo('a key', () => 1))).toBe(1);
});

test('a failed write rolls back only its own changes', async () => {
  const results = await Promise.allSettled([
    store.write((tx) => setMeta(tx, 'a', '1')),
    store.write(async (tx) => {
      await setMeta(tx, 'b', '1');
      throw new Error('no');
    }),
    store.write((tx) => setMeta(tx, 'c', '1')),
  ]);
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await metaKeys()).toEqual(['a', 'c']);
});

test('callbacks after a commit run in order, and never after a rollback', async () => {
  const seen: string[] = [];
  await Promise.allSettled([
    store.write((tx) => tx.afterCommit(() => seen.push('first'))),
    store.write((tx) => {
      tx.afterCommit(() => seen.push('undone'));
      throw new Error('no');
    }),
    store.write((tx) => {
      tx.afterCommit(() => seen.push('second'));
      tx.afterCommit(() => seen.push('third'));
    }),
  ]);
  expect(seen).toEqual(['first', 'second', 'third']);
});

test('ingest stores events and the offset together, with consecutive numbers', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const heard: number[] = [];
  store.onIngested((_, appended) => heard.push(appended.last_seq));
  const first = await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n', 'two\n']));
  const second = await store.ingest(batch('agt_1', 'ses_1', 8, ['three\n']));
  expect([first.first_seq, first.last_seq, second.first_seq, second.last_seq]).toEqual([1, 2, 3, 3]);
  expect(heard).toEqual([2, 3]);
  const rows = await store.read((r) =>
    r.all(r.sql.selectFrom('events').select(['seq', 'offset']).orderBy('seq')),
  );
  expect(rows.map((row) => [row.seq, row.offset])).toEqual([
    [1, 0],
    [2, 4],
    [3, 8],
  ]);
});

test('ingest rejects a batch that does not begin at the committed offset, and stores none of it', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
  for (const from of [0, 3, 5]) {
    await expect(store.ingest(batch('agt_1', 'ses_1', from, ['x']))).rejects.toBeInstanceOf(StaleBatch);
  }
  const head = await store.read((r) => r.get(r.sql.selectFrom('heads').selectAll()));
  expect(head!.last_seq).toBe(1);
});

test('answers many batches in order, each visible to reads', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const heard: number[] = [];
  store.onIngested((_, appended) => heard.push(appended.last_seq));
  const text = 'x'.repeat(400_000);
  const seen: number[] = [];
  await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      await store.ingest(batch('agt_1', 'ses_1', i * text.length, [text]));
      seen.push(i + 1);
      const head = await store.read((r) => r.get(r.sql.selectFrom('heads').select('last_seq')));
      expect(head!.last_seq).toBeGreaterThanOrEqual(i + 1);
    }),
  );
  expect(seen).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
  expect(heard).toEqual(seen);
});

test('rejects the batches after a rejected one, and stores those before it', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const results = await Promise.allSettled([
    store.ingest(batch('agt_1', 'ses_1', 0, ['one\n'])),
    store.write((tx) => setMeta(tx, 'between', '1')),
    store.ingest(batch('agt_1', 'ses_1', 5, ['two\n'])),
    store.ingest(batch('agt_1', 'ses_1', 9, ['three\n'])),
  ]);
  expect(results.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
  expect(await metaKeys()).toEqual(['between']);
  const rows = await store.read((r) => r.all(r.sql.selectFrom('events').select('offset')));
  expect(rows.map((row) => row.offset)).toEqual([0]);
});

test('ingest rejects the session of a deleted agent', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
  await store.write((tx) => tx.run(tx.sql.deleteFrom('agents').where('num', '=', num)));
  await expect(store.ingest(batch('agt_1', 'ses_1', 4, ['x']))).rejects.toThrow();
});

test('a number that is reused after a rollback does not lead to the wrong agent', async () => {
  const undone = store.write(async (tx) => {
    await tx.run(tx.sql.insertInto('meta').values({ key: 'x', value: '' }));
    throw new Error('no');
  });
  await expect(undone).rejects.toThrow('no');
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const appended = await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n']));
  const bytes = 4 + limits.event_row_bytes;
  expect(appended).toEqual({ agent_id: 'agt_1', agent_num: num, first_seq: 1, last_seq: 1, bytes });
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
  await store.backup(path);
  await expect(store.backup(path)).rejects.toThrow('EEXIST');
  const copy = await openSqlite({ path, log: silentLog });
  expect(await copy.read((r) => r.all(r.sql.selectFrom('meta').select('key')))).toHaveLength(1);
  await copy.close();
});

test('a check of a sound database finds no problems', async () => {
  await store.write((tx) => setMeta(tx, 'a', '1'));
  expect(await store.check()).toEqual([]);
});

test('vacuum frees the pages of deleted rows', async () => {
  await store.write((tx) => setMeta(tx, 'a', 'x'.repeat(1_000_000)));
  await store.write((tx) => tx.run(tx.sql.deleteFrom('meta')));
  const left = await store.vacuum(50);
  expect(left).toBeGreaterThan(0);
  expect(await store.vacuum(10_000)).toBe(0);
});

test('a closed store rejects writes and has finished earlier ones', async () => {
  const pending = store.write((tx) => setMeta(tx, 'a', '1'));
  await store.close();
  await pending;
  await expect(store.write(() => 1)).rejects.toThrow('closed');
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
