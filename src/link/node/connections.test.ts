/** Programs of the node's machine that connect without a valid token: they keep out neither the plane nor agents. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { expect, onTestFinished, test } from 'vitest';
import { openTestNode } from '../../testing/local-node.ts';
import { openTestNodeServer, remoteNode } from '../../testing/remote-node.ts';
import { testTls } from '../../testing/tls.ts';
import { callerConnection } from '../callers.ts';
import { type Connection, openConnection } from '../plane/connection.ts';
import { ActorService } from '../proto/actor_pb.ts';

const bounds = { anonymous_max: 4, owned_max: 8, per_owner_max: 2, anonymous_ms: 4_000 };

async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-connections-'));
  const node = await openTestNode(folder);
  const server = await openTestNodeServer(node, {
    bounds,
    routes: (router) => {
      router.service(ActorService, {
        call: async (_request, { requestHeader, values }) => {
          const token = requestHeader.get('authorization');
          if (token === null) throw new ConnectError('unauthorized', Code.Unauthenticated);
          values.get(callerConnection)!.own(token);
          return { result: token };
        },
      });
    },
  });
  const plane = remoteNode(() => server.port);
  onTestFinished(async () => {
    await plane.detach();
    await server.close();
    await node.close();
    await rm(folder, { recursive: true, force: true });
  });
  await plane.attach({ snapshot: async () => {}, fact: () => {}, wake: () => {} });
  const dial = async (): Promise<Connection> => {
    const connection = await openConnection({
      ...{ host: '127.0.0.1', port: server.port, servername: 'localhost' },
      tls: { ca: testTls.cert },
    });
    onTestFinished(() => connection.close());
    return connection;
  };
  return { plane, dial };
}

test('connections without a valid token keep out neither agents nor the plane', async () => {
  const { plane, dial } = await open();
  const silent: Connection[] = [];
  for (let i = 0; i < 12; i++) {
    silent.push(await dial());
    const client = createClient(ActorService, (await dial()).transport);
    const headers = { authorization: `agent ${i}` };
    expect((await client.call({}, { headers })).result).toBe(`agent ${i}`);
  }
  expect((await plane.health()).sessions_live).toBe(0);
  await Promise.all(silent.map(({ closed }) => closed));
  expect((await plane.health()).sessions_live).toBe(0);
});
