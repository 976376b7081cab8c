/** `deploy/nginx.conf` with a real nginx: in front of two planes, and of servers that lose responses. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect } from 'vitest';
import { Client } from '../src/client/client.ts';
import { TestCluster } from '../src/testing/cluster.ts';
import { nginx, openNginx, type TestNginx } from '../src/testing/nginx.ts';
import { freePort } from '../src/testing/plane.ts';
import { postgresTest as test } from '../src/testing/postgres.ts';
import { expectNothingLost, MIXED, startWriters } from '../src/testing/writers.ts';

/** The file, with another listen address and other upstreams, and without TLS. */
function configuration(port: number, upstreams: readonly string[]): string {
  const file = readFileSync(join(import.meta.dirname, '../deploy/nginx.conf'), 'utf8');
  return file
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replace(/^ *ssl_certificate.*\n/gm, '')
    .replace('plane-a:8080', upstreams[0]!)
    .replace('plane-b:8080', upstreams[1]!);
}

describe.runIf(nginx !== undefined)('behind nginx', () => {
  let folder: string;
  let port: number;
  let proxy: TestNginx | null = null;
  let cluster: TestCluster | null = null;
  let servers: Server[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-nginx-'));
    port = await freePort();
  });

  afterEach(async () => {
    await proxy?.close();
    await cluster?.close();
    for (const server of servers) server.close().closeAllConnections();
    [proxy, cluster, servers] = [null, null, []];
    await rm(folder, { recursive: true, force: true });
  });

  async function open(upstreams: readonly string[], failures = 'max_fails=1'): Promise<void> {
    proxy = await openNginx(
      join(folder, 'nginx'),
      configuration(port, upstreams).replaceAll('max_fails=1', failures),
      port,
    );
  }

  test('requests succeed and streams continue when the active plane is killed', async () => {
    const url = `http://127.0.0.1:${port}`;
    const env = { SVC_SERVER_BEHIND_PROXY: 'true', SVC_WEB_RP_ORIGIN: url };
    cluster = await TestCluster.open(['a', 'b'], { envOf: () => env });
    await open(cluster.planes.map((plane) => new URL(plane.url).host));
    const { active, standby } = await cluster.roles();
    const client = new Client({ url, token: standby.token });
    const writers = await startWriters({ client }, cluster.node, MIXED.slice(0, 2));
    await active.kill('SIGKILL');
    // nginx alternates between the planes. The one that stands by holds requests until it is active.
    for (let request = 1; request <= 6; request++) {
      expect(await client.call('getMe', {})).toMatchObject({ username: 'ana' });
    }
    await cluster.until(standby, ([first]) => first?.name === standby.env.SVC_CLUSTER_NAME);
    await expectNothingLost(standby, cluster.node, writers);
  });

  test('only GET and HEAD are sent again after the answer was lost', async () => {
    const received: string[] = [];
    servers = await Promise.all(
      [0, 1].map(async () => {
        const server = createServer((request) => {
          received.push(request.method!);
          request.socket.destroy();
        });
        await once(server.listen(0, '127.0.0.1'), 'listening');
        return server;
      }),
    );
    const hosts = servers.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
    // Servers that fail would get no requests for a while.
    await open(hosts, 'max_fails=0');
    for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE']) {
      const body = method === 'POST' || method === 'PUT' ? '{}' : null;
      const { status } = await fetch(`http://127.0.0.1:${port}/api/agents`, { method, body });
      expect([method, status]).toEqual([method, 502]);
    }
    expect(received).toEqual(['GET', 'GET', 'HEAD', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE']);
  });
});
