/** Writes that share a transaction of PostgreSQL, because they waited for another one. */
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { holdWrite } from '../../testing/held-write.ts';
import { createDatabase, execute, postgresTest as it, type TestDatabase } from '../../testing/postgres.ts';
import { PostgresProxy } from '../../testing/postgres-proxy.ts';
import type { Store, Tx } from '../store.ts';
import { limits } from './limits.ts';
import { openPostgres } from './postgres.ts';

let database: TestDatabase;
let proxy: PostgresProxy;
let store: Store;

beforeEach(async () => {
  // Writes share a transaction on a slow machine too.
  vi.spyOn(limits, 'shared_ms_max', 'get').mockReturnValue(60_000 as never);
  vi.spyOn(limits, 'slot_ms_max', 'get').mockReturnValue(60_000 as never);
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  store = await openPostgres({ url: proxy.url, log: silentLog, lost_ms_max: 3_000 });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  await proxy.close();
  await database.drop();
});

type Body = (tx: Tx) => Promise<unknown> | unknown;

/**
 * Starts these writes while another one runs, which then ends, and waits for them. Returns their values or errors. They
 * must share a transaction, unless they `run_again` in transactions of their own. `reads`: transactions of the caller meanwhile.
 */
async function runTogether(bodies: readonly Body[], { run_again = false, reads = 0 } = {}) {
  const before = store.server!.transactions;
  const held = await holdWrite(store, () => {});
  const settled = Promise.allSettled(bodies.map((body) => store.write(body)));
  await held.commit();
  const results = await settled;
  // The held one, and that of the others.
  expect(store.server!.transactions - before).toBe(1 + (run_again ? bodies.length : 1) + reads);
  return results.map((result) =>
    result.status === 'fulfilled' ? result.value : (result.reason as Error).message.split('\n')[0],
  );
}

const setMeta = (tx: Tx, key: string, value = '') => tx.run(tx.sql.insertInto('meta').values({ key, value }));
const changeMeta = (tx: Tx, value: string) =>
  tx.run(tx.sql.updateTable('meta').set({ value }).where('key', '=', 'n'));
const stored = () => execute(database.url, 'SELECT key, value FROM meta ORDER BY key');
const keys = async () => (await stored()).map(({ key }) => key);
const numberOf = async (tx: Tx) =>
  Number((await tx.get(tx.sql.selectFrom('meta').select('value').where('key', '=', 'n')))!.value);

it('writes that waited for the same write see each other in order, and commit once', async () => {
  await store.write((tx) => setMeta(tx, 'n', '0'));
  const called: number[] = [];
  const increment = async (tx: Tx) => {
    const sum = (await numberOf(tx)) + 1;
    tx.queue(
      tx.sql
        .updateTable('meta')
        .set({ value: String(sum) })
        .where('key', '=', 'n'),
    );
    tx.afterCommit(() => called.push(sum));
    return sum;
  };
  expect(await runTogether(Array.from({ length: 10 }, () => increment))).toEqual([
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  ]);
  expect(called).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(await stored()).toMatchObject([{ value: '10' }]);
  expect(store.server!.writes).toBe(12);
});

it('a write that fails is rolled back alone, and its callbacks do not run', async () => {
  await store.write((tx) => setMeta(tx, 'taken'));
  const called: string[] = [];
  const write = (key: string, end: Body) => async (tx: Tx) => {
    tx.afterCommit(() => called.push(key));
    tx.wake('run_events', 1);
    await setMeta(tx, key);
    return end(tx);
  };
  const results = await runTogether([
    write('a', () => 'a'),
    write('b', () => {
      throw new Error('b failed');
    }),
    () => {
      throw new Error('nothing was done');
    },
    write('c', (tx) => setMeta(tx, 'taken')),
    write('d', () => 'd'),
    write('e', () => new Promise((resolve) => setTimeout(resolve, 5))),
    write('f', async (tx) => (await tx.all(tx.sql.selectFrom('meta').select('key').orderBy('key'))).length),
  ]);
  expect(results).toEqual([
    'a',
    'b failed',
    'nothing was done',
    'duplicate key value violates unique constraint "meta_pkey"',
    'd',
    expect.stringContaining('waits for something other than its own statements'),
    4,
  ]);
  expect(await keys()).toEqual(['a', 'd', 'f', 'taken']);
  expect(called).toEqual(['a', 'd', 'f']);
});

it('a write whose failure shows only after its body has ended fails alone', async () => {
  await store.write((tx) => setMeta(tx, 'taken'));
  const results = await runTogether(
    [
      (tx) => setMeta(tx, 'a').then(() => 'a'),
      (tx) => tx.queue(tx.sql.insertInto('meta').values({ key: 'taken', value: '' })),
      (tx) => setMeta(tx, 'taken').catch(() => {}),
      (tx) => setMeta(tx, 'b').then(() => 'b'),
    ],
    { run_again: true },
  );
  const duplicate = 'duplicate key value violates unique constraint "meta_pkey"';
  expect(results).toEqual(['a', duplicate, duplicate, 'b']);
  expect(await keys()).toEqual(['a', 'b', 'taken']);
});

it('writes that conflict with another transaction run again, each alone', async () => {
  await store.write((tx) => setMeta(tx, 'n', '0'));
  let changed = false;
  const results = await runTogether(
    [
      (tx) => setMeta(tx, 'a').then(() => 'a'),
      async (tx) => {
        const found = await numberOf(tx);
        if (!changed) {
          execute(database.url, `UPDATE meta SET value = '7' WHERE key = 'n'`).then(() => {
            changed = true;
          }, console.error);
          const pause = tx.sql.selectNoFrom(sql`pg_sleep(0.005)::text`.as('pause'));
          while (!changed) await tx.get(pause);
        }
        await changeMeta(tx, String(found + 1));
        return found;
      },
      (tx) => setMeta(tx, 'c').then(() => 'c'),
    ],
    { run_again: true },
  );
  expect(results).toEqual(['a', 7, 'c']);
  expect(store.server!.conflicts).toBeGreaterThanOrEqual(3);
  expect((await stored()).map(({ value }) => value)).toEqual(['', '', '8']);
});

it.for(['answer', 'request'] as const)(
  'each write takes effect once if the %s of their commit was lost',
  async (part) => {
    let lost = false;
    const write = (key: string) => async (tx: Tx) => {
      if (!lost) proxy.loseCommit(part);
      lost = true;
      await setMeta(tx, key);
      return key;
    };
    const results = await runTogether(['a', 'b', 'c'].map(write), { run_again: part === 'request' });
    await proxy.untilLost();
    expect(results).toEqual(['a', 'b', 'c']);
    expect(await keys()).toEqual(['a', 'b', 'c']);
    expect(store.server!.unknown_commits).toBe(0);
  },
);

it('numbers of a write are not settled before its commit, although an earlier write was rolled back', async () => {
  const addFact = (tx: Tx) =>
    tx.run(tx.sql.insertInto('facts').values({ ts: 0, kind: 'a', ref: '', payload: '' }));
  const inserted = Promise.withResolvers<void>();
  const looked = Promise.withResolvers<void>();
  let is_over = false;
  looked.promise.then(() => {
    is_over = true;
  });
  const written = runTogether(
    [
      async (tx) => {
        await addFact(tx);
        throw new Error('undone');
      },
      async (tx) => {
        await addFact(tx);
        inserted.resolve();
        const pause = tx.sql.selectNoFrom(sql`pg_sleep(0.005)::text`.as('pause'));
        while (!is_over) await tx.get(pause);
      },
    ],
    { reads: 1 },
  );
  await inserted.promise;
  const before = await store.settledNumbers('facts');
  looked.resolve();
  expect(await written).toEqual(['undone', undefined]);
  const [fact] = await execute(database.url, 'SELECT id FROM facts');
  expect(before.open).toBe(true);
  expect(before.up_to).toBeLessThan(Number(fact!.id));
  expect(await store.settledNumbers('facts')).toEqual({ up_to: Number(fact!.id), open: false });
});

it('turns of writes in one transaction follow one another', async () => {
  const addLink =
    (name: string, end: Body = () => name) =>
    async (tx: Tx) => {
      tx.atEnd(
        'chain',
        async (reader) => {
          const keys = await reader.all(reader.sql.selectFrom('meta').select('key'));
          return keys.length;
        },
        async (length) => {
          await setMeta(tx, `link ${length}`, name);
          await end(tx);
          return length + 1;
        },
      );
    };
  const fail = () => {
    throw new Error('failed at the end');
  };
  await store.write(addLink('first'));
  await runTogether([
    addLink('undone', fail),
    addLink('a'),
    addLink('undone', fail),
    addLink('b'),
    addLink('c'),
  ]);
  await store.write(addLink('last'));
  const chain = await stored();
  expect(chain.map(({ key, value }) => `${key}: ${value}`)).toEqual([
    'link 0: first',
    'link 1: a',
    'link 2: b',
    'link 3: c',
    'link 4: last',
  ]);
});
