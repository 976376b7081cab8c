/** Which numbers each kind of database reports as settled, and turns at the end of transactions. */
import { sql } from 'kysely';
import { afterEach, expect, test, vi } from 'vitest';
import { holdWrite } from '../testing/held-write.ts';
import { postgresTest } from '../testing/postgres.ts';
import { stores, type TestStore } from '../testing/stores.ts';
import { all_settled, waitAfter } from './settled-numbers.ts';
import type { Store, Tx } from './store.ts';

const SOON = { timeout: 20_000 };

const [sqlite, postgres] = stores;
let opened: TestStore;
let store: Store;

afterEach(() => opened.remove());

async function open({ open: openStore }: (typeof stores)[number]): Promise<void> {
  opened = await openStore();
  store = opened.store;
}

const addFact = async (tx: Tx) => {
  const row = { ts: 0, kind: 'a', ref: '', payload: '' };
  return (await tx.get(tx.sql.insertInto('facts').values(row).returning('id')))!.id;
};
const addEntry = (tx: Tx) =>
  tx.run(tx.sql.insertInto('feed').values({ ts: 0, kind: 'a', owner_id: '', record: '' }));

test('SQLite: all numbers are settled', async () => {
  await open(sqlite);
  expect(await store.settledNumbers('facts')).toEqual(all_settled);
});

test('readers ask again soon only if numbers are open', () => {
  expect(waitAfter({ up_to: 1, open: false }, 1_000)).toBe(1_000);
  expect(waitAfter({ up_to: 1, open: false })).toBeUndefined();
  expect(waitAfter({ up_to: 1, open: true }, 1_000)).toBeLessThan(1_000);
  expect(waitAfter({ up_to: 1, open: true })).toBeLessThan(1_000);
  expect(waitAfter({ up_to: 1, open: true }, -5)).toBe(-5);
});

postgresTest('numbers above the lowest one that an open write may commit are not settled', async () => {
  await open(postgres);
  expect(await store.settledNumbers('facts')).toEqual({ up_to: 0, open: false });
  const before = await store.write(addFact);
  expect(await store.settledNumbers('facts')).toEqual({ up_to: before, open: false });
  // Numbers of bodies that were rolled back are never used.
  let low = 0;
  const lower = await holdWrite(store, async (tx) => {
    low = await addFact(tx);
    await addFact(tx);
  });
  const high = await store.write(addFact);
  let highest = 0;
  const higher = await holdWrite(store, async (tx) => {
    highest = await addFact(tx);
  });
  expect(high).toBeGreaterThan(low);
  const { up_to, open: is_open } = await store.settledNumbers('facts');
  expect(is_open).toBe(true);
  expect(up_to).toBeGreaterThanOrEqual(before);
  expect(up_to).toBeLessThan(low);
  // Other tables have their own numbers.
  await store.write(addEntry);
  expect((await store.settledNumbers('feed')).open).toBe(false);
  await lower.rollBack();
  // A write does not wait for the server's answer when it rolls back.
  const next = await vi.waitFor(async () => {
    const found = await store.settledNumbers('facts');
    expect(found.up_to).toBeGreaterThanOrEqual(high);
    return found;
  }, SOON);
  expect(next.open).toBe(true);
  expect(next.up_to).toBeLessThan(highest);
  await higher.commit();
  expect(await store.settledNumbers('facts')).toEqual({ up_to: highest, open: false });
});

postgresTest('a write holds one lock for a table, however many rows it adds', async () => {
  await open(postgres);
  const held = await holdWrite(store, async (tx) => {
    for (let i = 0; i < 5; i++) await addFact(tx);
    for (let i = 0; i < 5; i++) await addEntry(tx);
  });
  // The upper bits of the key name the table. They are 0 for the lock of the plane.
  const own = sql<boolean>`locktype = 'advisory' AND classid::bigint >> 24 > 0
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  const locks = await store.read((reader) =>
    reader.all(reader.sql.selectFrom(sql`pg_locks`.as('locks')).select(sql`classid`.as('key')).where(own)),
  );
  await held.commit();
  expect(locks).toHaveLength(2);
});

/** Adds a link to a chain of rows in `meta`, each with the key of the one before. */
async function addLink(tx: Tx, key: string): Promise<void> {
  tx.atEnd(
    'chain',
    (reader) =>
      reader.get(
        reader.sql.selectFrom('meta').select('key').where('key', 'like', 'link %').orderBy('key', 'desc'),
      ),
    async (last) => {
      const link = `link ${Number(last?.key.slice(5) ?? 0) + 1}`;
      await tx.run(tx.sql.insertInto('meta').values({ key: link, value: key }));
      return { key: link };
    },
  );
}

const links = async () => {
  const rows = await store.read((reader) =>
    reader.all(reader.sql.selectFrom('meta').selectAll().orderBy('key')),
  );
  return rows.map(({ key, value }) => `${key}: ${value}`);
};

for (const kind of stores) {
  kind.it(`${kind.kind}: what runs at the end of a write is a part of it`, async () => {
    await open(kind);
    await store.write((tx) => addLink(tx, 'a'));
    const undone = store.write(async (tx) => {
      await addLink(tx, 'b');
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    const failed = store.write((tx) => {
      tx.atEnd(
        'chain',
        async () => 'c',
        async (found) => {
          await tx.run(tx.sql.insertInto('meta').values({ key: 'link 9', value: found }));
          throw new Error('failed at the end');
        },
      );
    });
    await expect(failed).rejects.toThrow('failed at the end');
    expect(await store.write(async (tx) => addLink(tx, 'd').then(() => 'value'))).toBe('value');
    expect(await links()).toEqual(['link 1: a', 'link 2: d']);
  });

  kind.it(`${kind.kind}: what runs at the end may wait for its own statements only`, async () => {
    await open(kind);
    const write = store.write((tx) => {
      tx.atEnd(
        'chain',
        async () => {},
        () => new Promise((resolve) => setTimeout(resolve, 1)),
      );
    });
    await expect(write).rejects.toThrow('waits for something other than its own statements');
  });
}

postgresTest('writes that overlap take turns at their end, and need not run again', async () => {
  await open(postgres);
  let runs = 0;
  const held = await holdWrite(store, async (tx) => {
    runs++;
    await addLink(tx, 'first');
  });
  const once = runs;
  runs = 0;
  await Promise.all(
    ['second', 'third', 'fourth'].map((name) =>
      store.write(async (tx) => {
        runs++;
        await addLink(tx, name);
      }),
    ),
  );
  expect(runs).toBe(3 * once);
  await held.commit();
  const found = await links();
  expect(found).toHaveLength(4);
  expect(found.at(-1)).toBe('link 4: first');
});
