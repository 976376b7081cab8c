/** Several planes share a database: one is active, and another takes over. */
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { silentLog } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import { createDatabase, execute, postgresTest as it, type TestDatabase } from '../../testing/postgres.ts';
import { PostgresProxy } from '../../testing/postgres-proxy.ts';
import type { Store, Tx } from '../store.ts';
import { limits } from './limits.ts';
import { Member, type StandbyView } from './member.ts';
import { openPostgres } from './postgres.ts';

const SOON = { timeout: 20_000 };

let database: TestDatabase;
let proxy: PostgresProxy;
const planes: Plane[] = [];

interface Plane {
  member: Member;
  views: (StandbyView | null)[];
  store: Promise<Store>;
  lost: Problem[];
  stop: AbortController;
}

beforeEach(async () => {
  database = await createDatabase();
  proxy = await PostgresProxy.open(database.url);
  await execute(
    database.url,
    `INSERT INTO meta (key, value) VALUES ('plane_id', 'pln_1'), ('data_dir', 'hash')`,
  );
});
afterEach(async () => {
  for (const { stop } of planes) stop.abort(new Error('the test has ended'));
  const stores = await Promise.allSettled(planes.splice(0).map(({ store }) => store));
  await Promise.all(stores.map((store) => store.status === 'fulfilled' && store.value.close()));
  await proxy.close();
  await database.drop();
});

function start(name: string, url = database.url): Plane {
  const views: Plane['views'] = [];
  const lost: Problem[] = [];
  const stop = new AbortController();
  const member = new Member({
    ...{ id: `id-${name}`, name, version: '1.0.0', signal: stop.signal },
    onStandby: (view) => void views.push(view),
  });
  const onClaimLost = (problem: Problem) => lost.push(problem);
  const store = openPostgres({ url, member, onClaimLost, log: silentLog, lost_ms_max: 3_000 });
  store.catch(() => {});
  const plane = { member, views, store, lost, stop };
  planes.push(plane);
  return plane;
}

const setMeta = (tx: Tx, key: string) => tx.run(tx.sql.insertInto('meta').values({ key, value: '' }));
const names = async () =>
  (await execute(database.url, 'SELECT name FROM planes ORDER BY name')).map(({ name }) => name);

it('a second plane waits, learns where the first one is, and continues when it has closed', async () => {
  const first = start('one');
  const active = await first.store;
  first.member.announce('127.0.0.1:9');
  const second = start('two');
  const expected = {
    active: { id: 'id-one', name: 'one', address: '127.0.0.1:9' },
    ...{ plane_id: 'pln_1', data_dir: 'hash', trust_files: [] },
  };
  await vi.waitFor(() => expect(second.views.at(-1)).toEqual(expected), SOON);
  expect(await names()).toEqual(['one', 'two']);
  await active.write((tx) => setMeta(tx, 'a'));
  await active.close();
  await (await second.store).write((tx) => setMeta(tx, 'b'));
  expect(first.lost).toEqual([]);
  expect(await names()).toEqual(['two']);
});

it('a plane that waits can be stopped', async () => {
  await start('one').store;
  const second = start('two');
  await vi.waitFor(() => expect(second.views).not.toEqual([]), SOON);
  second.stop.abort(new Error('stopped'));
  await expect(second.store).rejects.toThrow('stopped');
  expect(await names()).toEqual(['one']);
});

it('a plane that must not become active ends its wait', async () => {
  await start('one').store;
  const member = new Member({
    ...{ id: 'id-two', name: 'two', version: '1.0.0', signal: new AbortController().signal },
    onStandby: () => {
      throw new Problem('conflict', 'wrong_secret_key', 'not ours');
    },
  });
  const second = openPostgres({ url: database.url, member, log: silentLog });
  await expect(second).rejects.toThrow('not ours');
});

it(
  'replaces a plane that is silent, whose writes are then rejected',
  async () => {
    const first = start('one', proxy.url);
    const active = await first.store;
    // Like a stopped process: the connections stay open.
    proxy.pause();
    const second = start('two');
    const store = await second.store;
    await store.write((tx) => setMeta(tx, 'a'));
    proxy.resume();
    await vi.waitFor(() => expect(first.lost).toMatchObject([{ code: 'claim_lost' }]), SOON);
    await expect(active.write((tx) => setMeta(tx, 'b'))).rejects.toThrow();
    expect(await execute(database.url, `SELECT key FROM meta WHERE key IN ('a', 'b')`)).toEqual([
      { key: 'a' },
    ]);
  },
  limits.silent_looks_max * 5_000,
);
