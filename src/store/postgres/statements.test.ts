/** Prepared statements: which texts are prepared, and what happens if the server cannot execute one any more. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { createDatabase, execute, postgresTest as it } from '../../testing/postgres.ts';
import type { Store, Tx } from '../store.ts';
import { limits } from './limits.ts';
import { openPostgres } from './postgres.ts';
import { PreparedStatements, StatementNames } from './statements.ts';

const uses = Array.from({ length: limits.prepared_from_uses }, (_, i) => i);

test('names texts that are used often, up to a number of texts and a length', () => {
  const names = new StatementNames();
  const lastOf = (text: string) => uses.map(() => names.nameOf(text)).at(-1);
  expect(names.nameOf('a')).toBeUndefined();
  const a = lastOf('a');
  expect(a).toBeDefined();
  expect(names.nameOf('a')).toBe(a);
  expect(lastOf('b')).not.toBe(a);
  expect(lastOf('c'.repeat(limits.prepared_chars_max + 1))).toBeUndefined();
  for (let i = 0; i < limits.prepared_max; i++) lastOf(`text ${i}`);
  expect(lastOf('d')).toBeUndefined();
  expect(names.nameOf('a')).toBe(a);
});

test('gives other names after one is renewed, once for all connections that find it outdated', () => {
  const names = new StatementNames();
  const nameOf = (text: string) => uses.map(() => names.nameOf(text)).at(-1)!;
  const before = nameOf('a');
  names.renew(before);
  const after = nameOf('a');
  expect(after).not.toBe(before);
  names.renew(before);
  expect(nameOf('a')).toBe(after);
});

test('sends a text without a name while the first use of its name is not answered', () => {
  const statements = new PreparedStatements(new StatementNames());
  const name = uses.map(() => statements.begin('a')).at(-1)!;
  expect(statements.begin('a')).toBeUndefined();
  statements.failed(name);
  expect(statements.begin('a')).toBe(name);
  statements.succeeded(name);
  expect(statements.begin('a')).toBe(name);
  statements.failed(name);
  expect([statements.begin('a'), statements.begin('a')]).toEqual([name, name]);
});

/** Opens a store with one connection that reads and one that writes. */
async function withStore(fn: (store: Store, url: string) => Promise<void>): Promise<void> {
  const database = await createDatabase();
  const store = await openPostgres({ url: database.url, log: silentLog, connections: 2 });
  try {
    await fn(store, database.url);
  } finally {
    await store.close();
    await database.drop();
  }
}

const meta = (store: Store) =>
  store.read((reader) => reader.all(reader.sql.selectFrom('meta').selectAll().where('key', '=', 'a')));
const setMeta = (tx: Tx, key: string) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
const prepared = (store: Store) =>
  store.read(async (reader) => {
    const statements = sql<{ statement: string }>`(SELECT statement FROM pg_prepared_statements)`.as('s');
    const rows = await reader.all(reader.sql.selectFrom(statements).selectAll());
    return rows.filter(({ statement }) => statement.includes('"meta"')).length;
  });

it('reads again if a migration changed the columns of a prepared statement', () =>
  withStore(async (store, url) => {
    await store.write((tx) => setMeta(tx, 'a'));
    const before = store.server!.conflicts;
    for (const _ of uses) await meta(store);
    expect(await prepared(store)).toBe(1);
    await execute(url, 'ALTER TABLE meta ADD COLUMN more text');
    expect(await meta(store)).toEqual([{ key: 'a', value: '', more: null }]);
    for (const _ of uses) await meta(store);
    expect(await prepared(store)).toBe(2);
    expect(store.server!.conflicts).toBe(before + 1);
  }));

it('a failed transaction leaves no statement that later ones cannot use', () =>
  withStore(async (store) => {
    await store.write((tx) => setMeta(tx, 'a'));
    const failing = uses.map(() =>
      store.write(async (tx) => {
        const twice = setMeta(tx, 'a');
        // The server rejects these, which are on their way with the first one.
        await Promise.allSettled([
          twice,
          ...uses.map((i) => tx.get(tx.sql.selectFrom('meta').selectAll().where('value', '=', String(i)))),
        ]);
      }),
    );
    const good = uses.map((i) =>
      store.write(async (tx) => {
        await tx.get(tx.sql.selectFrom('meta').selectAll().where('value', '=', String(i)));
        await setMeta(tx, `b${i}`);
      }),
    );
    for (const result of await Promise.allSettled(failing))
      expect(result).toMatchObject({ reason: { code: '23505' } });
    await Promise.all(good);
    const bodies = 1 + failing.length + good.length;
    expect(store.server!.conflicts).toBeLessThanOrEqual(
      process.env.SVC_TEST_RUN_BODIES_TWICE === '1' ? bodies : 0,
    );
  }));
