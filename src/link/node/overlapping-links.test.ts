import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openTestNode } from '../../testing/local-node.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import type { LinkPosition } from '../wire.ts';

test('an earlier link whose position takes longer to store does not replace a later one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-links-'));
  const node = await openTestNode(folder);
  const { promise: held, resolve: go } = Promise.withResolvers<void>();
  let latest: LinkPosition | null = null;
  const set = vi.fn(async (position: LinkPosition) => {
    latest = position;
    if (position.epoch === 1) await held;
  });
  const server = await openTestNodeServer(node, { latest: { get: () => latest, set } });
  const planes = [1, 2].map((epoch) =>
    remoteNode(() => server.port, {
      nextPosition: async () => ({ plane_id: 'pln_test', incarnation: 1, epoch }),
    }),
  );
  onTestFinished(async () => {
    for (const plane of planes) await plane.detach();
    await server.close();
    await node.close();
    await rm(folder, { recursive: true, force: true });
  });
  const sink = { snapshot: async () => {}, fact: () => {}, wake: () => {} };
  const earlier = planes[0]!.attach(sink).then(
    () => 'attached',
    (error: { code?: string }) => error.code,
  );
  await expect.poll(() => set).toHaveBeenCalledTimes(1);
  await planes[1]!.attach(sink);
  go();
  expect(await earlier).toBe('stale_link');
  await planes[1]!.forgetOwner('usr_none');
});
