/** The listeners of a plane in a cluster, before it is active. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { Closing } from './closing.ts';
import { Cluster } from './cluster.ts';
import { loadConfig } from './config.ts';

let folder: string;
let opened: Closing;
let other: Server;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-cluster-'));
  opened = new Closing();
  other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  await opened.close();
  await new Promise((resolve) => other.close(resolve));
  rmSync(folder, { recursive: true });
});

function open(cluster_listen: string): Promise<Cluster> {
  const env = { SVC_SERVER_LISTEN: '127.0.0.1:0', SVC_CLUSTER_LISTEN: cluster_listen, SVC_DATA_DIR: folder };
  return Cluster.open(
    {
      config: loadConfig({ env, cwd: folder, home: folder, system_file: join(folder, 'none.toml') }),
      data_dir: folder,
      key: new Uint8Array(32),
      clock: systemClock,
      log: silentLog,
      signal: new AbortController().signal,
      onStandby: () => {},
      onReload: () => {},
      certified: () => {},
    },
    opened,
  );
}

test('a plane does not stand by if its address for other planes is taken', async () => {
  const { port } = other.address() as { port: number };
  await expect(open(`127.0.0.1:${port}`)).rejects.toMatchObject({ code: 'EADDRINUSE', port });
});

test('a plane that is not active yet answers that it is not ready', async () => {
  const cluster = await open('127.0.0.1:0');
  expect((await fetch(`${cluster.listener.url}/readyz`)).status).toBe(503);
});
