/** The listeners of a plane in a cluster, before it is active. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { request as sendRequest } from 'node:https';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { CLIENT_HEADER } from '../server/peers.ts';
import type { HttpServer } from '../server/server.ts';
import { openTestDatabase } from '../testing/empty-sqlite.ts';
import { freePort } from '../testing/plane.ts';
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

test('a plane completes no handshake with another one before it is active', async () => {
  const port = await freePort();
  const cluster = await open(`127.0.0.1:${port}`);
  const store = await openTestDatabase(join(folder, 'svc.db'));
  opened.push(() => store.close());
  const trust = await cluster.shareTrust(store, 'pln_a');
  const request = async () => {
    const { ca, cert, key } = trust.identity()!;
    const names = { checkServerIdentity: () => undefined, headers: { [CLIENT_HEADER]: 'unknown' } };
    const outgoing = sendRequest({ host: '127.0.0.1', port, ca, cert, key, agent: false, ...names }).end();
    const [response] = await once(outgoing, 'response');
    return text(response);
  };
  await expect(request()).rejects.toThrow();
  const handler: RequestListener = (_request, response) => response.end('answered');
  cluster.activate({ handler } as HttpServer);
  expect(await request()).toBe('answered');
});

test('a plane that is not active yet answers that it is not ready', async () => {
  const cluster = await open('127.0.0.1:0');
  expect((await fetch(`${cluster.listener.url}/readyz`)).status).toBe(503);
});
