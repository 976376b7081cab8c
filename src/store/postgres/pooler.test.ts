import type pg from 'pg';
import { expect, test } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { pgbouncerTest, startPgBouncer } from '../../testing/pgbouncer.ts';
import { createDatabase } from '../../testing/postgres.ts';
import { examinePostgres } from './examine.ts';
import { isDirect, POOLER } from './pooler.ts';
import { openPostgres } from './postgres.ts';

test.each([
  [[7, 7], true],
  [[8, 8], false],
  [[7, 8], false],
])(
  'with the process 7, finds out from answers of the processes %j whether the connection is direct',
  async (pids, direct) => {
    const answers = [...pids];
    const client = { processID: 7, query: async () => ({ rows: [{ pid: answers.shift() }] }) };
    expect(await isDirect(client as unknown as pg.Client)).toBe(direct);
  },
);

const IGNORED = 'ignore_startup_parameters = options, lock_timeout, idle_in_transaction_session_timeout';

pgbouncerTest.each([
  ['with its defaults', 'transaction', ''],
  ['that ignores settings', 'transaction', IGNORED],
  ['with a pool by session', 'session', IGNORED],
])('refuses PgBouncer %s', async (_, mode, more) => {
  const database = await createDatabase();
  const pooler = await startPgBouncer(database.url, mode, more);
  try {
    await expect(openPostgres({ url: pooler.url, log: silentLog })).rejects.toThrow(POOLER);
    expect(await examinePostgres({ url: pooler.url })).toEqual({ problem: POOLER });
  } finally {
    await pooler.stop();
    await database.drop();
  }
});
