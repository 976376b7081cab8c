import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { directLink, type Link } from '../core/node.ts';
import { insertNode, updateNode } from '../features/nodes/queries.ts';
import { openTestStore } from '../testing/test-store.ts';
import { writeForLink } from './links.ts';
import { planeIdentity } from './plane-id.ts';
import type { Store } from './store.ts';

let folder: string;
let store: Store;
let ends = 0;
const link = (incarnation: number, epoch: number, node_id = 'gpu-1'): Link => ({
  node_id,
  position: { incarnation, epoch },
  end: () => {
    ends += 1;
  },
});

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-links-'));
  store = await openTestStore(folder);
  ends = 0;
  await planeIdentity(store, { now: () => 1_000 });
  const fields = { grpc_target: 'https://gpu-1:1', tls_server_name: null, default_worktree_root: null };
  await store.write(async (tx) => {
    await insertNode(tx, { id: 'gpu-1', name: 'gpu-1', ...fields }, 1);
    await updateNode(tx, 'gpu-1', { epoch: 7 });
  });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

test('runs a decision of the newest link, and of a node in this process', async () => {
  expect(await writeForLink(store, link(1_000, 7), async () => 'done')).toBe('done');
  expect(await writeForLink(store, directLink('main'), async () => 'done')).toBe('done');
  expect(ends).toBe(0);
});

test('drops a decision of any other link, and ends that link', async () => {
  const runs: string[] = [];
  const stale = [link(1_000, 6), link(1_000, 8), link(999, 7), link(1_000, 7, 'deleted')];
  for (const one of stale) {
    const decision = writeForLink(store, one, async () => runs.push('never'));
    await expect(decision).rejects.toMatchObject({ kind: 'bad_gateway', code: 'node_unreachable' });
  }
  await expect(writeForLink(store, null, async () => runs.push('never'))).rejects.toThrow();
  expect(runs).toEqual([]);
  expect(ends).toBe(stale.length);
});

test('drops a decision of a link that is older than a restored backup', async () => {
  await store.write((tx) =>
    tx.run(tx.sql.insertInto('meta').values({ key: 'restored_at_ms', value: '2000' })),
  );
  await expect(writeForLink(store, link(1_000, 7), async () => {})).rejects.toThrow();
  await writeForLink(store, link(2_000, 7), async () => {});
});

test('an error of the decision itself does not end the link', async () => {
  const failed = writeForLink(store, link(1_000, 7), async () => {
    throw new Error('not now');
  });
  await expect(failed).rejects.toThrow('not now');
  expect(ends).toBe(0);
});
