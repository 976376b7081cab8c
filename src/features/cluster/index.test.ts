import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Config } from '../../core/config.ts';
import { Metrics } from '../../server/metrics.ts';
import type { Store } from '../../store/store.ts';
import { openTestStore } from '../../testing/test-store.ts';
import { openCluster } from './index.ts';

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-planes-'));
  store = await openTestStore(folder);
  const row = { version: '1.0.0', address: null, started_at: 1_000, beat_at: 2_000 };
  await store.write((tx) =>
    tx.run(tx.sql.insertInto('planes').values({ ...row, id: 'pln_a', name: 'a', claim: 1 })),
  );
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

/** Its server does not answer. */
const silent = () => ({ read: store.read.bind(store), server: { up: () => false } }) as unknown as Store;

async function listAndCount(listen: string | null, answers = true) {
  const config = { get: (key: string) => (key === 'cluster.listen' ? listen : 'a') } as unknown as Config;
  const metrics = new Metrics();
  const { routes } = openCluster({ store: answers ? store : silent(), config, metrics });
  const list = routes!.listPlanes as unknown as (call: object) => Promise<{ name: string }[]>;
  return {
    names: (await list({ query: {} })).map(({ name }) => name),
    active: /svc_planes\{state="active"\} (\d+)/.exec(await metrics.text())?.[1],
    standby: /svc_planes\{state="standby"\} (\d+)/.exec(await metrics.text())?.[1],
  };
}

test('lists the planes of a shared database', async () => {
  expect(await listAndCount('127.0.0.1:8090')).toEqual({ names: ['a'], active: '1', standby: '0' });
});

test('lists no planes from the time when the database was shared', async () => {
  const row = { version: '1.0.0', address: null, started_at: 1_000, beat_at: 2_000, claim: null };
  await store.write((tx) => tx.run(tx.sql.insertInto('planes').values({ ...row, id: 'pln_b', name: 'b' })));
  expect(await listAndCount('127.0.0.1:8090')).toEqual({ names: ['a', 'b'], active: '1', standby: '1' });
  expect(await listAndCount(null)).toEqual({ names: [], active: '1', standby: undefined });
});

test('does not wait for the database to count the planes while it does not answer', async () => {
  expect(await listAndCount('127.0.0.1:8090', false)).toMatchObject({
    active: undefined,
    standby: undefined,
  });
});
