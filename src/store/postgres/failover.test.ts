/** A plane writes only to the server on which it took its claim, and not to a standby that was promoted meanwhile. */
import { afterEach, expect } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Problem } from '../../core/problem.ts';
import { createDatabase, execute, postgresTest as it, type TestDatabase } from '../../testing/postgres.ts';
import { PostgresPair, postgresPairTest } from '../../testing/postgres-pair.ts';
import { PostgresProxy } from '../../testing/postgres-proxy.ts';
import type { Tx } from '../store.ts';
import { Claim } from './claim.ts';
import { ConnectionPool } from './connection.ts';
import { openPostgres } from './postgres.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const setMeta = (tx: Tx, key: string) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
const keys = async (url: string) =>
  (await execute(url, 'SELECT key FROM meta ORDER BY key')).map(({ key }) => key);

async function database(): Promise<TestDatabase> {
  const created = await createDatabase();
  closing.push(() => created.drop());
  return created;
}

it('loses the claim when a connection leads to a server with another history', async () => {
  const lost: Problem[] = [];
  const options = {
    url: (await database()).url,
    log: silentLog,
    onClaimLost: (problem: Problem) => lost.push(problem),
  };
  const claim = await Claim.acquire(options);
  closing.push(() => claim.close());
  const same = new ConnectionPool(options, 1, (history) => claim.checkHistory(history));
  closing.push(() => same.close());
  (await same.acquire()).release();
  expect(lost).toEqual([]);

  const other = new ConnectionPool(options, 1, (history) => claim.checkHistory(`${history}0`));
  closing.push(() => other.close());
  const claim_lost = { code: 'claim_lost', message: expect.stringContaining('has failed over') };
  await expect(other.acquire()).rejects.toMatchObject(claim_lost);
  await expect(other.acquire()).rejects.toMatchObject(claim_lost);
  expect(other.use).toEqual({ open: 0, waiting: 0 });
  expect(lost).toMatchObject([claim_lost]);
  const connection = await same.acquire();
  const { rows } = await connection.query(claim.statement);
  connection.release();
  expect(() => claim.check({ rows })).toThrow(lost[0]!);
});

postgresPairTest('commits nothing on a promoted standby before the claim notices the failover', async () => {
  const pair = await PostgresPair.start();
  closing.push(() => pair.close());
  const proxy = await PostgresProxy.open(pair.primary.url);
  closing.push(() => proxy.close());
  const lost: Problem[] = [];
  const store = await openPostgres({
    ...{ url: proxy.url, log: silentLog, lost_ms_max: 3_000 },
    onClaimLost: (problem) => lost.push(problem),
  });
  closing.push(() => store.close());
  await store.write((tx) => setMeta(tx, 'before'));
  await pair.caughtUp();
  await pair.promote();
  proxy.redirect(pair.standby.url);
  // The connection of the claim stays open, so only the others lead to the new server.
  await execute(
    pair.primary.url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'svc' AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`,
  );
  const writes = ['a', 'b', 'c'].map((key) => store.write((tx) => setMeta(tx, key)));
  const results = await Promise.allSettled(writes);
  const claim_lost = { code: 'claim_lost', message: expect.stringContaining('has failed over') };
  expect(results).toMatchObject(results.map(() => ({ status: 'rejected', reason: claim_lost })));
  expect(lost).toMatchObject([claim_lost]);
  expect(await keys(pair.standby.url)).toEqual(['before']);
  expect(await keys(pair.primary.url)).toEqual(['before']);
});
