/** When a node was last seen is stored while it is linked, so that the next plane knows it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { openConnection } from '../../link/plane/connection.ts';
import { SOON } from '../../testing/features-fixture.ts';
import { openTestNode } from '../../testing/local-node.ts';
import { openTestNodeServer } from '../../testing/remote-node.ts';
import { testTls } from '../../testing/tls.ts';
import { limits } from './limits.ts';
import { NodeLinks, type NodeLinksDeps } from './links.ts';
import type { NodeRow } from './queries.ts';

vi.mock('./dialing.ts', async (original) => {
  const dialing = await original<typeof import('./dialing.ts')>();
  const dial: typeof dialing.dial = (_deps, row, signal) => {
    const { host, port } = dialing.toTarget(row);
    return openConnection({ host, port, servername: 'localhost', tls: { ca: testTls.cert }, signal });
  };
  return { ...dialing, dial };
});

/** Opens the links of a plane, and returns the function that they call at intervals to store what they have seen. */
function openLinks(unrecovered = 0): { links: NodeLinks; store: () => void } {
  const deps = {
    plane: { plane_id: 'pln_a', incarnation: 1 },
    trust: { origin: 'operator' },
    readers: () => ({
      ingest: { close: async () => {} },
      sink: { unrecovered, snapshot: async () => {}, fact: () => {}, wake: () => {} },
    }),
    hasLive: async () => false,
    onUp: () => {},
    onStale: async () => {},
    clock: systemClock,
    log: silentLog,
  } as unknown as NodeLinksDeps;
  const intervals = vi.spyOn(globalThis, 'setInterval');
  const links = new NodeLinks(deps);
  const [store] = intervals.mock.calls.find(([, ms]) => ms === limits.last_seen_store_ms)!;
  intervals.mockRestore();
  return { links, store: store as () => void };
}

test('when a node was last seen is stored at intervals, and once when its link ends', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-links-'));
  const node = await openTestNode(folder);
  const server = await openTestNodeServer(node);
  const { links, store } = openLinks();
  onTestFinished(async () => {
    await links.closeAll();
    await server.close();
    await node.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const stored: [string, number][] = [];
  const begun = Date.now();
  links.reportTo({
    nextEpoch: async () => 1,
    claimDisk: async (_id: string, disk_id: string) => disk_id,
    publishLinkState: async () => {},
    storeLastSeen: async (seen: ReadonlyMap<string, number>) => void stored.push(...seen),
  } as never);

  const grpc_target = `https://127.0.0.1:${server.port}`;
  links.open({ id: 'main', grpc_target, default_worktree_root: null, last_seen_at: null } as NodeRow);
  store();
  expect(stored).toEqual([]);
  await vi.waitFor(() => expect(links.state('main').status).toBe('connected'), SOON);
  store();
  await links.close('main');
  expect(stored.map(([id]) => id)).toEqual(['main', 'main']);
  for (const [, at_ms] of stored) expect(at_ms).toBeGreaterThanOrEqual(begun);
});

test('a node shows how many of its sessions were not recovered', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-links-'));
  const node = await openTestNode(folder);
  const server = await openTestNodeServer(node);
  const { links } = openLinks(7);
  onTestFinished(async () => {
    await links.closeAll();
    await server.close();
    await node.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const published: number[] = [];
  links.reportTo({
    nextEpoch: async () => 1,
    claimDisk: async (_id: string, disk_id: string) => disk_id,
    publishLinkState: async () => void published.push(links.state('main').unrecovered_sessions),
    storeLastSeen: async () => {},
  } as never);
  const grpc_target = `https://127.0.0.1:${server.port}`;
  links.open({ id: 'main', grpc_target, default_worktree_root: null, last_seen_at: null } as NodeRow);
  await vi.waitFor(() => expect(published).toContain(7), SOON);
});
