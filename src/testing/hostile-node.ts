/** A malicious node: it joins with a token and gets a valid certificate, like any node, then sends what a test scripts. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { joinRoutes } from '../link/node/join.ts';
import { type AttachRequest, NodeService } from '../link/proto/node_pb.ts';
import { NodeTrust } from '../link/trust/node-trust.ts';
import type { TestPlane } from './plane.ts';

type Attach = ServiceImpl<typeof NodeService>['attach'];
export type Answers = ReturnType<Attach> extends AsyncIterable<infer Answer> ? AsyncGenerator<Answer> : never;

/** What the node sends: fields of its hello, the messages after it, and the answers to other calls. */
export interface HostileOptions {
  hello?: { nodeId?: string; protocol?: number; protocolMin?: number; instanceId?: string };
  attach(node: HostileNode): Answers;
  calls?: Partial<ServiceImpl<typeof NodeService>>;
  /** Called with every message from the plane after its hello. */
  onMessage?(body: AttachRequest['body']): void;
}

const socketKey = createContextKey<Socket | null>(null);

export class HostileNode {
  readonly id: string;
  readonly #options: HostileOptions;
  readonly #closing: (() => Promise<unknown>)[] = [];
  /** Resolves when the current link has ended. */
  link_ended: Promise<void> = Promise.resolve();

  /** The plane binds the agents of this node to `id`, so each test uses a different one. */
  constructor(id: string, options: HostileOptions) {
    this.id = id;
    this.#options = options;
  }

  /** The status of this node, according to the plane. */
  async status(plane: TestPlane): Promise<string> {
    const nodes = await plane.client.call('listAgentNodes', { query: {} });
    return (Array.isArray(nodes) ? nodes : nodes.items).find(({ id }) => id === this.id)!.status;
  }

  async close(): Promise<void> {
    for (const close of this.#closing.splice(0)) await close();
  }

  async *#attach(requests: AsyncIterable<AttachRequest>, { signal }: HandlerContext): Answers {
    this.link_ended = new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    for await (const { body } of requests) {
      if (body.case !== 'hello') continue;
      const {
        nodeId = this.id,
        protocol = 1,
        protocolMin = 1,
        instanceId = 'instance',
      } = this.#options.hello ?? {};
      const speaks = { protocol, protocolMin, version: '9.9.9' };
      const value = { nodeId, instanceId, diskId: 'disk', speaks, timeMs: BigInt(Date.now()) };
      yield { body: { case: 'hello', value } };
      void this.#readMessages(requests);
      yield* this.#options.attach(this);
      return;
    }
  }

  async #readMessages(requests: AsyncIterable<AttachRequest>): Promise<void> {
    try {
      for await (const { body } of requests) this.#options.onMessage?.(body);
    } catch {
      // The link is over.
    }
  }

  // biome-ignore lint/correctness/useYield: the stream stays empty
  async *#sendNothing({ signal }: HandlerContext): AsyncGenerator<never> {
    if (!signal.aborted) await once(signal, 'abort');
  }

  /** Starts the server and registers the node with the plane. */
  async join(plane: TestPlane): Promise<void> {
    const { id } = this;
    const folder = await mkdtemp(join(tmpdir(), 'svc-evil-'));
    this.#closing.push(() => rm(folder, { recursive: true, force: true }));
    const { token } = (await plane.client.call('getBootstrapToken', {})) as { token: string };
    const trust = await NodeTrust.open({
      cert_dir: folder,
      node_id: id,
      mode: null,
      shared_secret: null,
      issuer: null,
      audience: null,
      bootstrap_token: token,
      clock: systemClock,
      log: silentLog,
    });
    const adapter = connectNodeAdapter({
      contextValues: (request) => {
        const socket = 'stream' in request ? request.stream.session?.socket : undefined;
        return createContextValues().set(socketKey, (socket ?? null) as Socket | null);
      },
      interceptors: [
        (next) => async (request) => {
          const authorization = request.header.get('authorization');
          const socket = request.contextValues.get(socketKey)!;
          await trust.authorize({ socket, authorization, service: request.service.typeName });
          return next(request);
        },
      ],
      routes: (router) => {
        joinRoutes({ trust, log: silentLog })(router);
        router.service(NodeService, {
          attach: (requests, context) => this.#attach(requests, context),
          getHealth: async () => ({ nodeId: id }),
          pull: (_reads, context) => this.#sendNothing(context),
          ...this.#options.calls,
        });
      },
    });
    const server = http2.createSecureServer(trust.tlsOptions(), adapter);
    trust.serve(server);
    const sessions = new Set<http2.ServerHttp2Session>();
    server.on('session', (session: http2.ServerHttp2Session) => sessions.add(session.on('error', () => {})));
    server.on('sessionError', () => {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#closing.unshift(async () => {
      trust.close();
      const closed = once(server, 'close');
      server.close();
      for (const session of sessions) session.destroy();
      await closed;
    });
    const { port } = server.address() as AddressInfo;
    const body = { id, name: id, grpc_target: `https://127.0.0.1:${port}` };
    await plane.client.call('registerAgentNode', { body });
  }
}
