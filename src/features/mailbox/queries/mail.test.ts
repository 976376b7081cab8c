import type { SQLInputValue } from 'node:sqlite';
import type { Compilable } from 'kysely';
import { expect } from 'vitest';
import type { Reader } from '../../../store/store.ts';
import { openSecondConnection, sqliteTest } from '../../../testing/test-store.ts';
import { openMailFixture } from '../testing.ts';
import { type InboxFilter, listInbox } from './mail.ts';

sqliteTest('reading an inbox does not scan acknowledged mail', async () => {
  const fixture = await openMailFixture();
  const database = openSecondConnection(fixture.store);
  const { sql } = await fixture.store.read(({ sql }) => ({ sql }));
  const planOf = async (filter: Omit<InboxFilter, 'to_actor_id' | 'limit'>): Promise<string> => {
    let plan = '';
    const all = (query: Compilable) => {
      const { sql: text, parameters } = query.compile();
      const steps = database.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(parameters as SQLInputValue[]));
      plan = steps.map(({ detail }) => detail).join('\n');
      return [];
    };
    await listInbox({ sql, all } as unknown as Reader, { to_actor_id: 'a@team', limit: 1, ...filter });
    return plan;
  };
  try {
    const view = { user_id: 'usr_1', limits: null };
    for (const filter of [{}, { run_num: 1 }, { view }, { run_num: 1, view }])
      expect(await planOf(filter)).toContain('USING INDEX mail_inbox');
  } finally {
    database.close();
    await fixture.end();
  }
});
