import { expect, test } from 'vitest';
import { kysely } from './connection.ts';
import { preparedQuery } from './prepared-query.ts';

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
