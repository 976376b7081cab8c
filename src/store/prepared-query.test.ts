import { expect, test } from 'vitest';
import { kysely } from './connection.ts';
import { preparedInsert, preparedQuery, preparedUpdate } from './prepared-query.ts';

const reader = { sql: kysely };

test('builds a query once and runs it with the parameters of each call', () => {
  let builds = 0;
  const ask = preparedQuery((sql, id: string, seq: number | null) => {
    builds++;
    return sql
      .updateTable('heads')
      .set((eb) => ({ last_seq: eb('last_seq', '+', seq), bytes: 7 }))
      .where('agent_num', 'in', (eb) => eb.selectFrom('agents').select('num').where('id', '=', id))
      .where('last_seq', '<>', seq);
  });
  const first = ask(reader, 'a', 1).compile();
  const second = ask(reader, 'b', null).compile();
  expect(builds).toBe(1);
  expect(first.parameters).toEqual([1, 7, 'a', 1]);
  expect(second.parameters).toEqual([null, 7, 'b', null]);
  expect(second.sql).toBe(first.sql);
});

test('builds an insert and an update once for each set of columns', () => {
  const insert = preparedInsert('facts', 'id');
  const row = { ts: 1, kind: 'a', ref: 'b', payload: '{}' };
  const first = insert(reader, row).compile();
  const second = insert(reader, { ...row, ts: 2 }).compile();
  expect(second.sql).toBe(first.sql);
  expect(first.sql).toMatch(/^insert into "facts" \("ts", "kind", "ref", "payload"\).* returning "id"$/);
  expect(second.parameters).toEqual([2, 'a', 'b', '{}']);

  const update = preparedUpdate('runs', 'num');
  expect(update(reader, { version: 3 }, 7).compile()).toMatchObject({
    sql: 'update "runs" set "version" = ? where "num" = ?',
    parameters: [3, 7],
  });
  const two = update(reader, { version: 3, error: null, output: undefined }, 8).compile();
  expect(two.sql).toBe('update "runs" set "version" = ?, "error" = ? where "num" = ?');
  expect(two.parameters).toEqual([3, null, 8]);
  const rising = preparedUpdate('runs', 'num', 'version');
  expect(rising(reader, { error: null, version: 3 }, 7).compile()).toMatchObject({
    sql: 'update "runs" set "error" = ?, "version" = CASE WHEN ? >= "version" THEN ? ELSE "version" + 1 END where "num" = ?',
    parameters: [null, 3, 3, 7],
  });
});
