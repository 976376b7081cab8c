/** A node with its server, and the plane's end of a link to it, in one process: real TLS on loopback, and real sessions. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { type NodeServer, type NodeServerOptions, openNodeServer } from '../link/node/server.ts';
import { openConnection } from '../link/plane/connection.ts';
import { RemoteNode, type RemoteNodeOptions } from '../link/plane/remote-node.ts';
import type { LinkPosition } from '../link/wire.ts';
import type { LocalNode } from '../node/node.ts';
import { openTestNode, sharedLauncher } from './local-node.ts';
import type { NodeUnderTest } from './node-suite.ts';
import { testTls } from './tls.ts';

/** Opens a server on a free port that accepts every caller. */
export async function openTestNodeServer(
  node: LocalNode,
  more: Partial<NodeServerOptions> = {},
): Promise<NodeServer> {
  let latest: LinkPosition | null = null;
  return openNodeServer({
    host: '127.0.0.1',
    port: 0,
    tls: { options: testTls },
    authorize: async () => {},
    renewal: {} as NodeServerOptions['renewal'],
    node,
    instance_id: randomUUID(),
    disk_id: 'disk',
    has_default_root: () => true,
    worktree_root_problem: async () => null,
    latest: {
      get: () => latest,
      set: async (position) => {
        latest = position;
      },
    },
    clock: systemClock,
    log: silentLog,
    ...more,
  });
}

let epoch = 0;

export function remoteNode(port: () => number, more: Partial<RemoteNodeOptions> = {}): RemoteNode {
  return new RemoteNode({
    id: 'main',
    log: silentLog,
    dial: (signal) =>
      openConnection({
        host: '127.0.0.1',
        port: port(),
        servername: 'localhost',
        tls: { ca: testTls.cert },
        signal,
      }),
    nextPosition: async () => ({ plane_id: 'pln_test', incarnation: 1, epoch: ++epoch }),
    accept: () => {},
    upcall: async () => null,
    worktree_root: () => null,
    onDown: () => {},
    onBack: () => {},
    ...more,
  });
}

export function remoteNodeOpener(): (data_dir: string) => Promise<NodeUnderTest> {
  const more = { launcher: sharedLauncher };
  return async (data_dir) => {
    let local = await openTestNode(data_dir, more);
    let server = await openTestNodeServer(local);
    let node = remoteNode(() => server.port);
    const close = async () => {
      await node.detach();
      await server.close();
      await local.close();
    };
    return {
      node,
      reopen: async () => {
        await close();
        local = await openTestNode(data_dir, more);
        server = await openTestNodeServer(local);
        node = remoteNode(() => server.port);
        return node;
      },
      close,
    };
  };
}
