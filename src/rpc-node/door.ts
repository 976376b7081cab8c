/**
 * The door of a node: the runtime of this machine behind gRPC. Who calls is proven before a handler runs, and only the
 * latest link may command: an earlier plane, or an earlier life of the same one, is refused and told what it lost to.
 */
import { once } from 'node:events';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { NodeService } from '../contract/gen/node_pb.ts';
import type { Node } from '../domain/node.ts';
import { Problem, problems } from '../domain/problem.ts';
import type { Launch } from '../domain/session.ts';
import { worktreeFromWire } from '../link/remote-node.ts';
import {
  COMMAND_EXPIRED,
  changedFileToWire,
  findingToWire,
  GRPC_ALONE,
  isBefore,
  LINK_HEADER,
  type LinkPosition,
  misunderstanding,
  present,
  showPosition,
  speaks,
  TIME_HEADER,
  toConnectError,
  Violation,
  viewToWire,
  whole,
} from '../link/wire.ts';
import { Attached } from './attached.ts';
import { servePull } from './pulling.ts';

export interface DoorOptions {
  host: string;
  port: number;
  /** `serve` gets the server before it listens. Null: no TLS. */
  tls: { options: http2.SecureServerOptions; serve?(server: http2.Http2SecureServer): void } | null;
  /** Throws a ConnectError for whoever may not call; `service` is the called one's name. */
  authorize(call: { socket: Socket; authorization: string | null; service: string }): Promise<void>;
  /** Other services at the same door. */
  routes?: (router: ConnectRouter) => void;
  renewal: Pick<ServiceImpl<typeof NodeService>, 'beginRenewal' | 'completeRenewal'>;
  node: Node;
  instance_id: string;
  disk_id: string;
  has_default_root(): boolean;
  /** Why a folder cannot be the base of derived workdirs; null when it can. */
  worktree_root_problem(path: string): Promise<string | null>;
  /** The highest place of a link so far, kept over restarts. */
  latest: { get(): LinkPosition | null; set(position: LinkPosition): Promise<void> };
  clock: Clock;
  log: Logger;
}

export interface Door {
  readonly port: number;
  /** Passes an actor's call up to the plane; throws a Problem when no plane is attached. */
  upcall(method: string, params: unknown, token: string): Promise<unknown>;
  close(): Promise<void>;
}

const socketKey = createContextKey<Socket | null>(null);

export async function openDoor(options: DoorOptions): Promise<Door> {
  const handlers = new Handlers(options);
  const adapter = connectNodeAdapter({
    ...GRPC_ALONE,
    acceptCompression: [],
    readMaxBytes: limits.link_message_bytes_max,
    interceptors: [guard(options)],
    contextValues: (request) => {
      const socket = 'stream' in request ? (request.stream.session?.socket ?? null) : null;
      return createContextValues().set(socketKey, socket as Socket | null);
    },
    routes: (router) => {
      router.service(NodeService, handlers);
      options.routes?.(router);
    },
  });
  const settings = {
    initialWindowSize: limits.link_window_bytes,
    maxFrameSize: limits.link_frame_bytes,
    maxConcurrentStreams: limits.link_streams_max,
  };
  const server = makeServer(options.tls, settings, adapter);
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on('session', (session: http2.ServerHttp2Session) => {
    // Who is nobody was cut off already, and whatever is asked of such a session throws.
    if (session.destroyed) return;
    session.setLocalWindowSize(limits.link_window_bytes);
    session.setTimeout(limits.link_idle_ms, () => session.destroy());
    session.on('error', (error) => options.log.debug({ err: error }, 'a connection of the link failed'));
    session.once('close', () => sessions.delete(session));
    sessions.add(session);
  });
  server.on('sessionError', () => {});
  server.on('tlsClientError', (error: Error) => {
    options.log.debug({ err: error }, 'a caller of the node was turned away');
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    upcall: (method, params, token) => handlers.upcall(method, params, token),
    close: async () => {
      handlers.end();
      const closed = once(server, 'close');
      server.close();
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}

function makeServer(
  tls: DoorOptions['tls'],
  settings: http2.Settings,
  adapter: ReturnType<typeof connectNodeAdapter>,
): http2.Http2Server | http2.Http2SecureServer {
  if (tls === null) return http2.createServer({ settings }, adapter);
  const server = http2.createSecureServer({ ...tls.options, minVersion: 'TLSv1.3', settings }, adapter);
  tls.serve?.(server);
  return server;
}

/** Every call is authorized first; what a handler throws, at once or in the middle of a stream, is turned into words of the wire. */
function guard({ authorize, clock, log }: DoorOptions): Interceptor {
  const refusal = (error: unknown, method: string): ConnectError => {
    const broken = error instanceof Violation;
    if (broken) {
      log.warn({ reason: error.message, method }, 'plane breaks the protocol');
    } else if (!(error instanceof ConnectError) && !(error instanceof Problem) && !isHungUp(error)) {
      log.error({ err: error, method }, 'a call of the plane failed');
    }
    const refused = broken ? new ConnectError(error.message, Code.InvalidArgument) : toConnectError(error);
    refused.metadata.set(TIME_HEADER, String(clock.now()));
    return refused;
  };
  async function* guarded<T>(messages: AsyncIterable<T>, method: string): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (error) {
      throw refusal(error, method);
    }
  }
  return (next) => async (request) => {
    const method = request.method.name;
    try {
      const authorization = request.header.get('authorization');
      const socket = request.contextValues.get(socketKey);
      if (!socket) throw new ConnectError('unauthorized', Code.Unauthenticated);
      await authorize({ socket, authorization, service: request.service.typeName });
      const response = await next(request);
      return response.stream ? { ...response, message: guarded(response.message, method) } : response;
    } catch (error) {
      throw refusal(error, method);
    }
  };
}

/** The caller's connection is over, which the link tells by itself. */
function isHungUp(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return /^(ERR_STREAM_|ERR_HTTP2_|ECONNRESET|EPIPE)/.test(code);
}

class Handlers implements ServiceImpl<typeof NodeService> {
  readonly #options: DoorOptions;
  readonly beginRenewal;
  readonly completeRenewal;
  #attached: Attached | null = null;

  constructor(options: DoorOptions) {
    this.#options = options;
    this.beginRenewal = options.renewal.beginRenewal;
    this.completeRenewal = options.renewal.completeRenewal;
  }

  upcall(method: string, params: unknown, token: string): Promise<unknown> {
    if (!this.#attached) return Promise.reject(problems.nodeUnreachable());
    return this.#attached.upcall(method, params, token);
  }

  end(): void {
    this.#attached?.end();
  }

  // --- the link --------------------------------------------------------------------------------------------------

  attach: ServiceImpl<typeof NodeService>['attach'] = async function* (this: Handlers, requests, context) {
    const { node, instance_id, disk_id, log, latest } = this.#options;
    const incoming = requests[Symbol.asyncIterator]();
    const first = await incoming.next();
    if (first.done || first.value.body.case !== 'hello') throw new ConnectError('a hello is missing');
    const hello = first.value.body.value;
    const wrong = misunderstanding(hello.speaks, { us: `node ${node.id}`, them: 'this plane' });
    if (wrong) throw new Problem('bad_gateway', 'version_skew', wrong);
    if (hello.nodeId !== node.id) {
      const message = `node id mismatch: registered ${hello.nodeId}, node says ${node.id}`;
      throw new Problem('bad_gateway', 'node_id_mismatch', message);
    }
    const position = {
      plane_id: hello.planeId,
      incarnation: whole(hello.incarnation),
      epoch: whole(hello.epoch),
    };
    const known = latest.get();
    if (known && !isBefore(known, position)) {
      log.warn(
        { refused: showPosition(position), latest: showPosition(known) },
        'an earlier link is refused',
      );
      throw stale(known);
    }
    await latest.set(position);
    this.#attached?.end();
    const attached = new Attached(node, position);
    this.#attached = attached;
    const onAbort = () => attached.end();
    context.signal.addEventListener('abort', onAbort);
    log.info({ plane_id: position.plane_id, epoch: position.epoch }, 'plane is attached');
    void attached.take({ [Symbol.asyncIterator]: () => incoming }).then(
      () => attached.end(),
      (error) => attached.end(error),
    );
    try {
      const value = {
        nodeId: node.id,
        instanceId: instance_id,
        diskId: disk_id,
        speaks: speaks(),
      };
      yield { body: { case: 'hello', value } };
      yield* attached.responses();
    } finally {
      context.signal.removeEventListener('abort', onAbort);
      attached.end();
      if (this.#attached === attached) {
        this.#attached = null;
        await node.detach();
        log.info({ plane_id: position.plane_id, epoch: position.epoch }, 'plane is gone');
      }
    }
  };

  pull: ServiceImpl<typeof NodeService>['pull'] = (requests, context) => {
    const attached = this.#mustBeLatest(context);
    return servePull(this.#options.node, requests, (grown) => {
      attached.grown = grown;
    });
  };

  // --- commands --------------------------------------------------------------------------------------------------

  start: ServiceImpl<typeof NodeService>['start'] = async (request, context) => {
    this.#mustBeLatest(context);
    const launch: Launch = {
      session_id: request.sessionId,
      plane_id: request.planeId,
      agent_id: request.agentId,
      agent_name: request.agentName,
      owner_id: request.ownerId,
      workdir: request.workdir,
      argv: request.argv,
      env: { ...request.env },
      stdin: request.stdin,
      on_exit: request.onExit === 'keep' ? 'keep' : 'kill',
      ...present({
        actor_token: request.actorToken,
        step_input: request.stepInput,
        preset: request.preset,
      }),
    };
    return { session: viewToWire(await this.#options.node.start(launch)) };
  };

  stop: ServiceImpl<typeof NodeService>['stop'] = async ({ sessionId, graceMs, notAfterMs }, context) => {
    this.#mustBeLatest(context);
    // It lay here, or on the way, while nobody could read it; the plane may have taken it back since.
    if (notAfterMs !== undefined && this.#options.clock.now() > whole(notAfterMs)) throw tooLate();
    const { cleanup, survivors } = await this.#options.node.stop(sessionId, graceMs);
    return { ...present({ cleanup }), survivors: survivors.map(BigInt) };
  };

  input: ServiceImpl<typeof NodeService>['input'] = async ({ sessionId, offset, data, eof }, context) => {
    this.#mustBeLatest(context);
    return { length: BigInt(await this.#options.node.input(sessionId, whole(offset), data, eof)) };
  };

  getStepOutput: ServiceImpl<typeof NodeService>['getStepOutput'] = async ({ sessionId, max }, context) => {
    this.#mustBeLatest(context);
    const bounded = Math.min(max, limits.step_output_bytes_max + 1);
    const output = await this.#options.node.stepOutput(sessionId, bounded);
    return present({ output: output as Uint8Array<ArrayBuffer> | null });
  };

  forget: ServiceImpl<typeof NodeService>['forget'] = async ({ sessionId }, context) => {
    const attached = this.#mustBeLatest(context);
    await this.#options.node.forget(sessionId);
    // What still stands there is refused now.
    attached.grown(sessionId);
    return {};
  };

  resolveWorkdir: ServiceImpl<typeof NodeService>['resolveWorkdir'] = async ({ workdir }, context) => {
    this.#mustBeLatest(context);
    const { path, below_worktree_root } = await this.#options.node.folders.resolve(workdir);
    return { workdir: path, belowWorktreeRoot: below_worktree_root };
  };

  createWorktree: ServiceImpl<typeof NodeService>['createWorktree'] = async (request, context) => {
    this.#mustBeLatest(context);
    const worktree = await this.#options.node.folders.createWorktree({
      agent_id: request.agentId,
      name: request.name,
      workdir: request.workdir ?? null,
      repo: request.repo ?? null,
      ref: request.ref ?? null,
      root: request.root ?? null,
    });
    const { workdir, repo, branch, base } = worktree;
    return { worktree: { workdir, ...present({ repo, branch, base }) } };
  };

  removeWorktree: ServiceImpl<typeof NodeService>['removeWorktree'] = async (
    { worktree, force },
    context,
  ) => {
    this.#mustBeLatest(context);
    if (!worktree) throw new ConnectError('worktree is required', Code.InvalidArgument);
    const { removed, kept_because } = await this.#options.node.folders.removeWorktree(
      worktreeFromWire(worktree),
      { force },
    );
    return { removed, ...present({ keptBecause: kept_because }) };
  };

  getChanges: ServiceImpl<typeof NodeService>['getChanges'] = async ({ workdir, base }, context) => {
    this.#mustBeLatest(context);
    const changes = await this.#options.node.folders.changes({ workdir, base: base ?? null });
    const { git, branch, head, files, truncated } = changes;
    return {
      git,
      ...present({ branch, base: changes.base, head }),
      files: files.map(changedFileToWire),
      truncated,
    };
  };

  getChange: ServiceImpl<typeof NodeService>['getChange'] = async ({ workdir, base, path }, context) => {
    this.#mustBeLatest(context);
    const change = await this.#options.node.folders.change({ workdir, base: base ?? null }, path);
    return { file: changedFileToWire(change), diff: change.diff, truncated: change.truncated };
  };

  findFiles: ServiceImpl<typeof NodeService>['findFiles'] = async ({ workdir, words }, context) => {
    this.#mustBeLatest(context);
    if (words.length > limits.search_chars_max)
      throw new ConnectError('words are too long', Code.InvalidArgument);
    return await this.#options.node.folders.files(workdir, words);
  };

  getHealth: ServiceImpl<typeof NodeService>['getHealth'] = async ({ worktreeRoot }) => {
    const { node, clock, has_default_root, worktree_root_problem } = this.#options;
    const { uptime_seconds, sessions_live, disk } = await node.health();
    return {
      nodeId: node.id,
      speaks: speaks(),
      uptimeSeconds: BigInt(uptime_seconds),
      sessionsLive: sessions_live,
      disk: {
        path: disk.path,
        freeBytes: BigInt(disk.free_bytes),
        totalBytes: BigInt(disk.total_bytes),
        startsAllowed: disk.starts_allowed,
      },
      timeMs: BigInt(clock.now()),
      hasDefaultRoot: has_default_root(),
      ...present({
        worktreeRootProblem: worktreeRoot === undefined ? null : await worktree_root_problem(worktreeRoot),
      }),
    };
  };

  probe: ServiceImpl<typeof NodeService>['probe'] = async ({ programs }, context) => {
    this.#mustBeLatest(context);
    const questions = programs.map(({ program, versionArgv, env, files }) => ({
      program,
      version_argv: versionArgv,
      env,
      files,
    }));
    return { findings: (await this.#options.node.probe(questions)).map(findingToWire) };
  };

  /** Commands of a link that is not the attached one come from a plane that does not know yet that it lost. */
  #mustBeLatest({ requestHeader }: HandlerContext): Attached {
    const attached = this.#attached;
    if (!attached) throw unreachable();
    if (requestHeader.get(LINK_HEADER) !== showPosition(attached.position)) throw stale(attached.position);
    return attached;
  }
}

function unreachable(): Problem {
  return new Problem('bad_gateway', 'not_attached', 'no plane is attached to this node');
}

function tooLate(): Problem {
  return new Problem('bad_gateway', COMMAND_EXPIRED, 'the command came too late');
}

function stale(latest: LinkPosition): Problem {
  const message = `a later link is known: plane ${latest.plane_id}, incarnation ${latest.incarnation}, epoch ${latest.epoch}`;
  return new Problem('bad_gateway', 'stale_link', message);
}
