/** PostgreSQL fails over to a standby: the plane continues there without loss, or says what may be missing. */
import { afterEach, beforeEach, expect } from 'vitest';
import { TestPlane } from '../src/testing/plane.ts';
import { PostgresPair } from '../src/testing/postgres-pair.ts';
import { PostgresProxy } from '../src/testing/postgres-proxy.ts';
import { postgresServerTest as test } from '../src/testing/postgres-server.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

let pair: PostgresPair;
let proxies: PostgresProxy[];
let plane: TestPlane | undefined;

beforeEach(async () => {
  pair = await PostgresPair.start();
  const urls = [pair.primary.url, pair.standby.url];
  proxies = await Promise.all(urls.map((url) => PostgresProxy.open(url, { tcp: true })));
});
afterEach(async () => {
  await plane?.close();
  plane = undefined;
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await pair.close();
});

/** The URL with both servers. */
const url = () => proxies[0]!.url.replace(proxies[0]!.host, proxies.map(({ host }) => host).join(','));

test('nothing is lost or repeated if the standby is synchronous', async () => {
  await pair.synchronize();
  plane = await TestPlane.open({ env: { SVC_DATABASE_URL: url(), SVC_DATABASE_SYNCHRONOUS: 'true' } });
  const writers = await startWriters(plane, plane, MIXED.slice(0, 2));
  await pair.primary.kill();
  await pair.promote();
  await plane.ended();
  await plane.start();
  await expectNothingLost(plane, plane, writers);
  expect(plane.log).toContain('PostgreSQL has failed over');
});

test('a standby that lacks commits is treated like a restored database: a gap, and no number twice', async () => {
  plane = await TestPlane.open({ env: { SVC_DATABASE_URL: url() } });
  const agent = await plane.agent('echo before; sleep 1000', { name: 'lasts' });
  const before = await plane.frames(agent.id, (frames) => frames.some(({ event }) => event === 'output'));
  await pair.caughtUp();
  await pair.detach();
  const lost = await plane.agent('echo lost');
  await plane.finished(lost.id);
  await pair.primary.kill();
  await pair.promote();
  await plane.ended();
  await plane.start();
  const after = await plane.frames(agent.id, (frames) => frames.some(({ data }) => data.code === 'log_gap'));
  expect(after.slice(0, before.length).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  const ids = after.map(({ id }) => Number(id)).filter((id) => id > 0);
  expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  expect(new Set(ids).size).toBe(ids.length);
  expect(plane.log).toContain('the database was restored or moved');
});
