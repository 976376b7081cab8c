/** What the store does with PostgreSQL alone: values, conflicts between transactions, and lost connections. */
import { type Compilable, sql } from 'kysely';
import pg from 'pg';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { holdWrite } from '../../testing/held-write.ts';
import {
  createDatabase,
  createEmptyDatabase,
  execute,
  postgresTest as it,
  type TestDatabase,
} from '../../testing/postgres.ts';
import { type LostPart, PostgresProxy } from '../../testing/postgres-proxy.ts';
import type { Reader, Store, Tx } from '../store.ts';
import { addAgent, addSession, batch } from '../testing.ts';
import { limits } from './limits.ts';
import { openPostgres } from './postgres.ts';

let database: TestDatabase;
let proxy: PostgresProxy;
let store: Store;

beforeEach(async () => {
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  store = await openPostgres({ url: proxy.url, log: silentLog, lost_ms_max: 3_000 });
});
afterEach(async () => {
  await store.close();
  await proxy.close();
  await database.drop();
});

const setMeta = (tx: Tx, key: string, value = '') => tx.run(tx.sql.insertInto('meta').values({ key, value }));
const metaValue = async (reader: Reader, key: string) =>
  (await reader.get(reader.sql.selectFrom('meta').select('value').where('key', '=', key)))?.value;
const meta = () =>
  store.read(async (reader) => {
    const rows = await reader.all(reader.sql.selectFrom('meta').selectAll().orderBy('key'));
    return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
  });

/** Adds 1 to the number with this key, and returns the sum. */
async function increment(tx: Tx, key = 'n'): Promise<number> {
  const sum = Number(await metaValue(tx, key)) + 1;
  await tx.run(
    tx.sql
      .updateTable('meta')
      .set({ value: String(sum) })
      .where('key', '=', key),
  );
  return sum;
}

function selected(expression: ReturnType<typeof sql>): Promise<unknown> {
  return store.read(async (reader) => {
    const row = await reader.get(reader.sql.selectNoFrom(expression.as('value')));
    return row?.value;
  });
}

it.for([
  ['an int8', sql`9007199254740991::int8`, Number.MAX_SAFE_INTEGER],
  ['a negative int2', sql`-3::int2`, -3],
  ['a sum of int8', sql`(SELECT sum(n) FROM unnest('{1,2}'::int8[]) AS n)`, 3],
  ['an average', sql`(SELECT avg(n) FROM unnest('{1,2}'::int8[]) AS n)`, 1.5],
  ['a float8', sql`0.25::float8`, 0.25],
  ['true', sql`1 = 1`, 1],
  ['false', sql`1 = 0`, 0],
  ['null', sql`null::int8`, null],
  ['a text', sql`${'ä\n'}::text`, 'ä\n'],
  ['a text with U+0000', sql`${'a\0b'}::text`, 'a\ufffdb'],
  ['bytes', sql`${new Uint8Array([0, 255, 92])}::bytea`, new Uint8Array([0, 255, 92])],
  ['no bytes', sql`${new Uint8Array()}::bytea`, new Uint8Array()],
] as const)('converts %s', async ([, expression, value]) => {
  expect(await selected(expression)).toEqual(value);
});

it('rejects integers that are not safe, unknown types, and parameters that are no SQL values', async () => {
  await expect(selected(sql`9007199254740992::int8`)).rejects.toThrow(RangeError);
  await expect(selected(sql`now()`)).rejects.toThrow('1184');
  await expect(selected(sql`${true}::text`)).rejects.toThrow(TypeError);
  await expect(selected(sql`${undefined}::text`)).rejects.toThrow(TypeError);
  expect(await selected(sql`1`)).toBe(1);
});

it('visits more rows than it requests at once', async () => {
  const count = limits.fetch_rows_max * 3 + 1;
  const numbers = sql<number>`generate_series(1, ${count}::int)`.as('number');
  const visited = (until: number) =>
    store.read(async (reader) => {
      let last = 0;
      await reader.each(reader.sql.selectNoFrom(numbers), ([number]) => {
        expect(number).toBe(last + 1);
        last = number as number;
        return last < until;
      });
      // The transaction is still usable.
      expect(await metaValue(reader, 'none')).toBeUndefined();
      return last;
    });
  expect(await visited(Infinity)).toBe(count);
  expect(await visited(count - 2)).toBe(count - 2);
  expect(await visited(1)).toBe(1);
});

it('requests few rows at first', async () => {
  // The server computes a row when it is requested.
  const made = sql<string>`set_config('svc.made', numbers.n::text, true)`.as('made');
  const numbers = sql<{ n: number }>`(SELECT generate_series(1, 1000) AS n)`.as('numbers');
  const madeBy = (visits: number) =>
    store.read(async (reader) => {
      let visited = 0;
      await reader.each(reader.sql.selectFrom(numbers).select(made), () => ++visited < visits);
      const last = await reader.get(
        reader.sql.selectNoFrom(sql<string>`current_setting('svc.made')`.as('n')),
      );
      return Number(last!.n);
    });
  expect(await madeBy(1)).toBe(limits.fetch_rows_min);
  expect(await madeBy(limits.fetch_rows_min + 1)).toBe(
    limits.fetch_rows_min * (1 + limits.fetch_rows_factor),
  );
  expect(await madeBy(2000)).toBe(1000);
});

it('runs writes that change the same row as if one ran after the other, with callbacks in that order', async () => {
  await store.write((tx) => setMeta(tx, 'n', '0'));
  const called: number[] = [];
  const sums = await Promise.all(
    Array.from({ length: 30 }, () =>
      store.write(async (tx) => {
        const sum = await increment(tx);
        tx.afterCommit(() => called.push(sum));
        return sum;
      }),
    ),
  );
  const expected = Array.from({ length: 30 }, (_, i) => i + 1);
  expect(sums.toSorted((a, b) => a - b)).toEqual(expected);
  expect(called).toEqual(expected);
});

it('does not let two writes both miss the row that the other inserts', async () => {
  const insertFirst = (key: string) =>
    store.write(async (tx) => {
      const known = await tx.get(tx.sql.selectFrom('meta').select('key').where('key', 'in', ['a', 'b']));
      if (known === undefined) await setMeta(tx, key);
    });
  await Promise.all([insertFirst('a'), insertFirst('b')]);
  expect(Object.keys(await meta())).toHaveLength(1);
});

it('a long write succeeds although short ones keep changing what it read', async () => {
  await store.write((tx) => setMeta(tx, 'n', '0'));
  let running = true;
  let runs = 0;
  const short = Array.from({ length: 3 }, async () => {
    while (running) await store.write((tx) => increment(tx));
  });
  await store.write(async (tx) => {
    runs++;
    for (let i = 0; i < 50; i++) await metaValue(tx, 'n');
    await increment(tx);
  });
  running = false;
  await Promise.all(short);
  expect(runs).toBeGreaterThan(1);
  expect(runs).toBeLessThanOrEqual(limits.gate_attempt);
  expect(store.server!.conflicts).toBeGreaterThanOrEqual(runs - 1);
});

it('a write that runs alone sees what writes in progress change', async () => {
  const held = await holdWrite(store, (tx) => setMeta(tx, 'held'));
  const alone = store.write((tx) => metaValue(tx, 'held'), { alone: true });
  const waiting = `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE datname = current_database() AND relation = 'gate'::regclass AND NOT granted`;
  await vi.waitFor(async () => expect(await execute(database.url, waiting)).toHaveLength(1), {
    timeout: 20_000,
  });
  await held.commit();
  expect(await alone).toBe('');
});

it('a write whose body throws before a queued statement conflicts runs again', async () => {
  await store.write((tx) => setMeta(tx, 'n', '0'));
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('SELECT pg_advisory_lock(7)');
  const change = async () => {
    await client.query(`UPDATE meta SET value = '7' WHERE key = 'n'`);
    await client.query('SELECT pg_advisory_unlock(7)');
  };
  let runs = 0;
  let other: Promise<unknown> | undefined;
  try {
    await store.write(async (tx) => {
      runs++;
      const value = await metaValue(tx, 'n');
      if (value === '7') return;
      other = change();
      // Waits until the other change is committed.
      tx.queue(tx.sql.selectNoFrom(sql`pg_advisory_xact_lock(7)::text`.as('locked')));
      tx.queue(tx.sql.updateTable('meta').set({ value: '8' }).where('key', '=', 'n'));
      throw new Error(`not ${value}`);
    });
    await other;
  } finally {
    await client.end();
  }
  expect(runs).toBe(2);
});

it('a write whose body continues after an error of a statement fails with that error', async () => {
  await store.write((tx) => setMeta(tx, 'a'));
  const caught = store.write(async (tx) => {
    await setMeta(tx, 'b');
    await setMeta(tx, 'a').catch(() => {});
  });
  await expect(caught).rejects.toThrow('duplicate key');
  const not_awaited = store.write((tx) => {
    setMeta(tx, 'a').catch(() => {});
  });
  await expect(not_awaited).rejects.toThrow('duplicate key');
  expect(await meta()).toEqual({ a: '' });
});

/** Ends all connections of the store. */
const endConnections = () =>
  execute(
    database.url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );

it('runs a write and a read again if the connection is lost in between', async () => {
  let runs = 0;
  await store.write(async (tx) => {
    runs++;
    await setMeta(tx, 'a', String(runs));
    if (runs === 1)
      await tx.run(tx.sql.selectNoFrom(sql`pg_terminate_backend(pg_backend_pid())`.as('ended')));
  });
  expect(runs).toBeGreaterThan(1);
  expect(await meta()).toEqual({ a: String(runs) });
  await endConnections();
  expect(await meta()).toEqual({ a: String(runs) });
  await endConnections();
  await store.write((tx) => setMeta(tx, 'b'));
  expect(Object.keys(await meta())).toEqual(['a', 'b']);
  expect(store.server).toMatchObject({ unknown_commits: 0 });
  expect(store.server!.lost).toBeGreaterThan(0);
});

/** Writes once, and loses the commit. */
async function writeLosing(part: LostPart, refuse = false) {
  let called = 0;
  proxy.loseCommit(part, refuse);
  const [result] = await Promise.allSettled([
    store.write(async (tx) => {
      tx.afterCommit(() => called++);
      await tx.run(tx.sql.insertInto('facts').values({ ts: 0, kind: 'a', ref: '', payload: '' }));
      return 'value';
    }),
  ]);
  const rows = await execute(database.url, 'SELECT id FROM facts');
  return { result, called, rows: rows.length };
}

it('a write is not repeated if only the answer to its commit was lost', async () => {
  expect(await writeLosing('answer')).toEqual({
    result: { status: 'fulfilled', value: 'value' },
    ...{ called: 1, rows: 1 },
  });
});

it('a write is repeated if its commit did not reach the server', async () => {
  expect(await writeLosing('request')).toEqual({
    result: { status: 'fulfilled', value: 'value' },
    ...{ called: 1, rows: 1 },
  });
});

it('a write fails and is not repeated if it remains unknown whether it was committed', async () => {
  const { result, ...rest } = await writeLosing('answer', true);
  expect(result).toMatchObject({
    status: 'rejected',
    reason: { kind: 'unavailable', code: 'storage_failed' },
  });
  expect(rest).toEqual({ called: 0, rows: 1 });
  expect(store.server).toMatchObject({ unknown_commits: 1 });
});

it('finishes a write once the server says that it was committed', async () => {
  const called: string[] = [];
  proxy.loseCommit('answer', true);
  const unknown = store.write(async (tx) => {
    tx.afterCommit(() => called.push('first'));
    tx.wake('tokens', 'tok_1');
    await setMeta(tx, 'a');
  });
  store.wakes.on('tokens', (id) => called.push(String(id)));
  await expect(unknown).rejects.toMatchObject({ kind: 'unavailable' });
  expect(called).toEqual([]);
  proxy.accept();
  // More than there are connections.
  const later = Array.from({ length: limits.connections + 1 }, (_, i) =>
    store.write(async (tx) => {
      tx.afterCommit(() => called.push('later'));
      await setMeta(tx, `later ${i}`);
    }),
  );
  await Promise.all(later);
  expect(called).toEqual(['first', 'tok_1', ...later.map(() => 'later')]);
});

it('forgets a write once the server says that it was not committed', async () => {
  let called = 0;
  proxy.loseCommit('request', true);
  const unknown = store.write(async (tx) => {
    tx.afterCommit(() => called++);
    await setMeta(tx, 'a');
  });
  await expect(unknown).rejects.toMatchObject({ kind: 'unavailable' });
  proxy.accept();
  await store.write((tx) => setMeta(tx, 'a', 'another'));
  expect(called).toBe(0);
  expect(await meta()).toEqual({ a: 'another' });
});

it('says how many connections are open, and how many transactions wait for one or for other writes', async () => {
  const readers = limits.connections / 2;
  const reads = Array.from({ length: readers + 3 }, () => meta());
  expect(store.server!.connections()).toEqual({ open: readers, waiting: 3 });
  await Promise.all(reads);
  const writes = [1, 2, 3].map((i) => store.write((tx) => setMeta(tx, String(i))));
  expect(store.server!.connections()).toMatchObject({ waiting: 2 });
  await Promise.all(writes);
  expect(store.server!.connections()).toMatchObject({ waiting: 0 });
});

it('needs no rights but those of the owner of the database', async () => {
  const role = `svc_test_${Math.random().toString(36).slice(2)}`;
  await execute(database.url, `CREATE ROLE ${role} LOGIN`);
  const owned = await createEmptyDatabase(`OWNER ${role}`);
  const owned_proxy = await PostgresProxy.open(owned.url);
  try {
    const url = new URL(owned_proxy.url);
    url.username = role;
    const owned_store = await openPostgres({ url: url.href, log: silentLog });
    owned_proxy.loseCommit('request');
    await owned_store.write((tx) => setMeta(tx, 'a'));
    owned_proxy.loseCommit('answer');
    await owned_store.write((tx) => setMeta(tx, 'b'));
    await owned_store.close();
    expect(await execute(owned.url, 'SELECT key FROM meta ORDER BY key')).toEqual([
      { key: 'a' },
      { key: 'b' },
    ]);
  } finally {
    await owned_proxy.close();
    await owned.drop();
    await execute(database.url, `DROP ROLE ${role}`);
  }
});

it('stores a batch of output once if the answer to its commit was lost', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  const heard: number[] = [];
  store.onIngested((_, { last_seq }) => heard.push(last_seq));
  proxy.loseCommit('answer');
  expect(await store.ingest(batch('agt_1', 'ses_1', 0, ['one\n', 'two\n']))).toMatchObject({ last_seq: 2 });
  proxy.loseCommit('request');
  expect(await store.ingest(batch('agt_1', 'ses_1', 8, ['three\n']))).toMatchObject({ last_seq: 3 });
  expect(heard).toEqual([2, 3]);
});

it('compresses output with LZ4 if the server can', async () => {
  const num = await addAgent(store, 'agt_1');
  await addSession(store, num, 'ses_1');
  await store.ingest(batch('agt_1', 'ses_1', 0, ['a line of a log\n'.repeat(4_000)]));
  const [known] = await execute(
    database.url,
    `SELECT 'lz4' = ANY (enumvals) AS lz4 FROM pg_settings WHERE name = 'default_toast_compression'`,
  );
  const rows = await execute(database.url, 'SELECT pg_column_compression(data) AS method FROM events');
  expect(rows).toEqual([{ method: known!.lz4 ? 'lz4' : 'pglz' }]);
});

it('a database that is read-only is a failure of the storage', async () => {
  const read_only = { compile: () => ({ sql: 'SET TRANSACTION READ ONLY', parameters: [] }) };
  const writing = store.write(async (tx) => {
    await tx.run(read_only as unknown as Compilable<unknown>);
    await setMeta(tx, 'a');
  });
  await expect(writing).rejects.toMatchObject({ code: 'storage_failed', is_of_store: true });
});
