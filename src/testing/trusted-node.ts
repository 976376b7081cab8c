/** The two sides of a link's authentication for tests: a node whose server only reports its health, and a plane. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectRouter, createClient, createContextKey, createContextValues } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import pino, { type Logger } from 'pino';
import { onTestFinished } from 'vitest';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import { silentLog } from '../base/log.ts';
import { joinRoutes, renewalHandlers } from '../link/node/join.ts';
import { type Connection, type ConnectionOptions, openConnection } from '../link/plane/connection.ts';
import { ActorService } from '../link/proto/actor_pb.ts';
import { NodeService } from '../link/proto/node_pb.ts';
import { type JoinOptions, joinNode } from '../link/trust/join.ts';
import { NodeTrust, type NodeTrustOptions } from '../link/trust/node-trust.ts';
import { type Identity, type KeyPair, type LeafContent, makeKey, makeLeaf } from '../link/trust/pki.ts';
import { PlaneTrust, type PlaneTrustOptions, verifyNode } from '../link/trust/plane-trust.ts';
import { toProblem } from '../link/wire.ts';

export const BOOTSTRAP = 'a bootstrap token for tests';
export const SECRET = 'a shared secret of more than 32 bytes';

/** A clock that only a test changes. It starts at the real time. */
export class TestClock implements Clock {
  now_ms = Date.now();
  now(): number {
    return this.now_ms;
  }
}

/** A temporary folder that is deleted after the test. */
export async function testFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-trust-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function testPlaneTrust(more: Partial<PlaneTrustOptions> = {}): Promise<PlaneTrust> {
  const trust = await PlaneTrust.open({
    cert_dir: await testFolder(),
    plane_id: 'pln_test',
    mode: 'tls',
    shared_secret: null,
    issuer: 'svc',
    audience: 'svc-internal',
    clock: new TestClock(),
    log: silentLog,
    ...more,
  });
  onTestFinished(() => trust.close());
  return trust;
}

export interface TrustedNode {
  trust: NodeTrust;
  options: NodeTrustOptions;
  port: number;
  /** The reasons in the node's log why peers were rejected. */
  reasons: string[];
}

const socketKey = createContextKey<Socket | null>(null);

export async function openTrustedNode(more: Partial<NodeTrustOptions> = {}): Promise<TrustedNode> {
  const reasons: string[] = [];
  const clock = new TestClock();
  const options: NodeTrustOptions = {
    cert_dir: more.cert_dir ?? (await testFolder()),
    node_id: 'web-1',
    mode: null,
    shared_secret: null,
    issuer: null,
    audience: null,
    bootstrap_token: BOOTSTRAP,
    clock,
    log: reasonsTo(reasons, clock),
    ...more,
  };
  const trust = await NodeTrust.open(options);
  const adapter = connectNodeAdapter({
    acceptCompression: [],
    contextValues: (request) => {
      const socket = 'stream' in request ? request.stream.session?.socket : undefined;
      return createContextValues().set(socketKey, (socket ?? null) as Socket | null);
    },
    interceptors: [
      (next) => async (request) => {
        const socket = request.contextValues.get(socketKey)!;
        const authorization = request.header.get('authorization');
        await trust.authorize({ socket, authorization, service: request.service.typeName });
        return next(request);
      },
    ],
    routes: (router: ConnectRouter) => {
      const options = { trust, log: silentLog };
      router.service(NodeService, {
        getHealth: async () => ({ nodeId: trust.node_id }),
        ...renewalHandlers(options),
      });
      joinRoutes(options)(router);
      router.service(ActorService, { call: async () => ({ result: '"ok"' }) });
    },
  });
  let server: http2.Http2Server | http2.Http2SecureServer;
  if (trust.mode === 'disabled') server = http2.createServer(adapter);
  else {
    const secure = http2.createSecureServer(trust.tlsOptions(), adapter);
    trust.serve(secure);
    server = secure;
  }
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session: http2.ServerHttp2Session) => {
    session.on('error', () => {});
    sessions.add(session);
  });
  server.on('sessionError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    trust.close();
    const closed = once(server, 'close');
    server.close();
    for (const session of sessions) session.destroy();
    await closed;
  });
  return { trust, options, port: (server.address() as AddressInfo).port, reasons };
}

/** Collects the reason of every rejection. Moves the clock back and forth, because the log omits rejections that follow too soon. */
function reasonsTo(reasons: string[], clock: TestClock): Logger {
  let step_ms: number = limits.refusal_log_ms;
  return pino(
    { base: null },
    {
      write: (line: string) => {
        const { reason } = JSON.parse(line) as { reason?: string };
        if (reason === undefined) return;
        reasons.push(reason);
        clock.now_ms += step_ms;
        step_ms = -step_ms;
      },
    },
  );
}

export function joinTo(
  node: { port: number },
  plane: PlaneTrust,
  more: Partial<JoinOptions> = {},
): Promise<void> {
  return joinNode({
    host: '127.0.0.1',
    port: node.port,
    node_id: 'web-1',
    names: ['127.0.0.1', 'web-1.example'],
    bootstrap_token: BOOTSTRAP,
    spend: async () => true,
    trust: plane,
    open: openConnection,
    clock: new TestClock(),
    ...more,
  });
}

/** Creates a certificate for loopback that is valid for an hour. By default it does not contain the identity of a plane or node. */
export async function leafOf(ca: KeyPair, more: Partial<LeafContent> = {}): Promise<Identity> {
  const key = await makeKey();
  const cert = await makeLeaf(ca, key, {
    title: 'a leaf',
    uri: 'https://a.example/',
    names: ['127.0.0.1', 'web-1.example'],
    usages: ['server', 'client'],
    now_ms: Date.now(),
    lifetime_ms: 60 * 60 * 1000,
    ...more,
  });
  return { ca: ca.cert, cert, key };
}

/** Opens a connection to a node like the plane. */
export async function dial(
  node: { port: number },
  identity: Partial<Identity> & { ca: string },
  more: Partial<ConnectionOptions> = {},
): Promise<Connection> {
  const connection = await openConnection({
    host: '127.0.0.1',
    port: node.port,
    servername: '127.0.0.1',
    tls: identity,
    verify: verifyNode('web-1', 'web-1.example'),
    ...more,
  });
  onTestFinished(() => connection.close());
  return connection;
}

/** The result of a call on the connection: `ok`, or the message of the Problem. */
export async function outcome(connection: Connection, token: string | null): Promise<string> {
  const headers = token === null ? undefined : { authorization: `Bearer ${token}` };
  try {
    const { nodeId } = await createClient(NodeService, connection.transport).getHealth(
      {},
      headers ? { headers } : {},
    );
    return nodeId === 'web-1' ? 'ok' : nodeId;
  } catch (error) {
    return toProblem(error).message;
  }
}
