/** Outages and failovers: what a store logs, which host it uses, and to which server it does not write. */
import pino from 'pino';
import { afterEach, expect } from 'vitest';
import { silentLog } from '../../base/log.ts';
import type { Problem } from '../../core/problem.ts';
import { onlyLong } from '../../testing/long.ts';
import { createDatabase, execute, postgresTest as it, type TestDatabase } from '../../testing/postgres.ts';
import { PostgresPair } from '../../testing/postgres-pair.ts';
import { PostgresProxy } from '../../testing/postgres-proxy.ts';
import { postgresServerTest } from '../../testing/postgres-server.ts';
import type { Tx } from '../store.ts';
import { Claim } from './claim.ts';
import { ConnectionPool } from './connection.ts';
import { openPostgres } from './postgres.ts';
import { openPostgresReader } from './reads.ts';
import { Server } from './server.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const setMeta = (tx: Tx, key: string) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
const keys = async (url: string) =>
  (await execute(url, 'SELECT key FROM meta ORDER BY key')).map(({ key }) => key);

/** Opens a store whose log lines and lost claims are collected. */
async function open(url: string, lost_ms_max = 3_000) {
  const lost: Problem[] = [];
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => lines.push(JSON.parse(line)) });
  const onClaimLost = (problem: Problem) => lost.push(problem);
  const store = await openPostgres({ url, log, lost_ms_max, onClaimLost });
  closing.push(() => store.close());
  return { store, lost, lines };
}

async function openProxy(url: string, options?: { tcp: boolean }): Promise<PostgresProxy> {
  const proxy = await PostgresProxy.open(url, options);
  closing.push(() => proxy.close());
  return proxy;
}

async function openPair(): Promise<PostgresPair> {
  const pair = await PostgresPair.start();
  closing.push(() => pair.close());
  return pair;
}

/** The URL of a database with several hosts. */
const withHosts = (...proxies: PostgresProxy[]) =>
  proxies[0]!.url.replace(proxies[0]!.host, proxies.map(({ host }) => host).join(','));

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
  const server = new Server(options);
  const claim = await Claim.acquire(options, server);
  closing.push(() => claim.close());
  const pool = { options, server, size: 1 };
  const same = new ConnectionPool({ ...pool, checkHistory: (history) => claim.checkHistory(history) });
  closing.push(() => same.close());
  (await same.acquire()).release();
  expect(lost).toEqual([]);

  const other = new ConnectionPool({ ...pool, checkHistory: (history) => claim.checkHistory(`${history}0`) });
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

postgresServerTest(
  'commits nothing on a promoted standby before the claim notices the failover',
  async () => {
    const pair = await openPair();
    const proxy = await openProxy(pair.primary.url);
    const { store, lost } = await open(proxy.url);
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
  },
);

postgresServerTest(
  'uses the host that is not a standby, and the promoted one after it was opened again',
  async () => {
    const pair = await openPair();
    const [standby, primary] = await Promise.all(
      [pair.standby, pair.primary].map(({ url }) => openProxy(url, { tcp: true })),
    );
    const url = withHosts(standby!, primary!);
    const first = await open(url);
    await first.store.write((tx) => setMeta(tx, 'a'));
    if (first.store.source.kind !== 'postgres') throw new Error('not PostgreSQL');
    const reader = openPostgresReader(first.store.source);
    closing.push(() => reader.close());
    const query = () => reader.read((tx) => tx.all(tx.sql.selectFrom('meta').select('key')));
    expect(await query()).toEqual([{ key: 'a' }]);
    await pair.caughtUp();

    await pair.primary.kill();
    await pair.promote();
    await expect.poll(() => first.lost).toMatchObject([{ code: 'claim_lost' }]);
    await expect(first.store.write((tx) => setMeta(tx, 'b'))).rejects.toMatchObject({ code: 'claim_lost' });
    const second = await open(url);
    await second.store.write((tx) => setMeta(tx, 'c'));
    expect(await keys(pair.standby.url)).toEqual(['a', 'c']);
  },
);

it('continues through another host that leads to the same server', async () => {
  const { url } = await database();
  const [one, two] = [await openProxy(url, { tcp: true }), await openProxy(url, { tcp: true })];
  two.cut();
  const { store, lost, lines } = await open(withHosts(one, two));
  await store.write((tx) => setMeta(tx, 'a'));
  two.accept();
  one.cut();
  await store.write((tx) => setMeta(tx, 'b'));
  expect(await keys(url)).toEqual(['a', 'b']);
  await expect.poll(() => store.server!.up()).toBe(true);
  expect(lost).toEqual([]);
  expect(lines.length).toBeLessThanOrEqual(2);
});

it('says for each host why it cannot be used', async () => {
  const opening = open('postgres://svc:hush@127.0.0.1:1,127.0.0.1:2/none', 0);
  await expect(opening).rejects.toMatchObject({
    code: 'database_unreachable',
    message:
      'cannot connect to the database none at 127.0.0.1:1,127.0.0.1:2: 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1; 127.0.0.1:2: connect ECONNREFUSED 127.0.0.1:2',
  });
});

it('logs one line when an outage begins and one when it ends, and none for failed requests', async () => {
  const proxy = await openProxy((await database()).url);
  const { store, lines } = await open(proxy.url, 100);
  await store.write((tx) => setMeta(tx, 'a'));
  lines.splice(0);
  proxy.cut();
  const write = () => store.write((tx) => setMeta(tx, 'b'));
  const failed = { status: 'rejected', reason: { code: 'storage_failed' } };
  expect(await Promise.allSettled([write(), write(), write()])).toMatchObject([failed, failed, failed]);
  expect(store.server!.up()).toBe(false);
  expect(lines).toMatchObject([{ level: 40, msg: 'PostgreSQL does not answer' }]);
  proxy.accept();
  await expect.poll(() => store.server!.up()).toBe(true);
  await write();
  expect(lines.slice(1)).toMatchObject([
    { level: 30, msg: 'PostgreSQL answers again', outage_ms: expect.any(Number) },
  ]);
});

onlyLong(it)('gives up connections on which the server has silently vanished', async () => {
  const { url } = await database();
  const proxy = await openProxy(url);
  const { store, lines } = await open(proxy.url);
  await store.write((tx) => setMeta(tx, 'a'));
  proxy.freeze();
  // The connection would remain silent even if the server was back.
  const writing = store.write((tx) => setMeta(tx, 'b'));
  await expect.poll(() => store.server!.connections().open, { timeout: 60_000 }).toBe(0);
  proxy.thaw();
  await writing;
  expect(await keys(url)).toEqual(['a', 'b']);
  expect(lines).toMatchObject([{ msg: 'PostgreSQL does not answer' }, { msg: 'PostgreSQL answers again' }]);
});
