/**
 * The gRPC listener of a node: makes the sessions of this machine available to the plane. The caller is authenticated
 * before a handler runs, and only the latest link may send commands. An earlier plane, or an earlier incarnation of
 * the same one, is rejected with the position of the link that replaced it.
 */
import { once } from 'node:events';
import http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { Clock } from '../../base/clock.ts';
import { type ConnectionBounds, Connections } from '../../base/connections.ts';
import { closeWhenIdle } from '../../base/idle-session.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import type { Node } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { Launch } from '../../core/session.ts';
import { callerBounds, callerConnection } from '../callers.ts';
import { limits } from '../limits.ts';
import { worktreeFromWire } from '../plane/remote-node.ts';
import { type GetPatchRequest, NodeService } from '../proto/node_pb.ts';
import {
  COMMAND_EXPIRED,
  changedFileToWire,
  findingToWire,
  formatPosition,
  GRPC_ONLY,
  isBefore,
  LINK_HEADER,
  type LinkPosition,
  remoteToWire,
  repositoryToWire,
  safeInteger,
  versionInfo,
  versionMismatch,
  viewToWire,
  withoutNulls,
} from '../wire.ts';
import { type Authorize, callerSocket, guard } from './guard.ts';
import { PlaneLink } from './plane-link.ts';
import { type Grown, servePull } from './pulling.ts';

export interface NodeServerOptions {
  host: string;
  port: number;
  /** `serve` gets the server before it listens. Null: no TLS. */
  tls: { options: http2.SecureServerOptions; serve?(server: http2.Http2SecureServer): void } | null;
  authorize: Authorize;
  /** Other services on the same listener. */
  routes?: (router: ConnectRouter) => void;
  renewal: Pick<ServiceImpl<typeof NodeService>, 'beginRenewal' | 'completeRenewal'>;
  node: Node;
  instance_id: string;
  disk_id: string;
  has_default_root(): boolean;
  /** The reason why a folder cannot be the base of derived workdirs, or null if it can. */
  worktree_root_problem(path: string): Promise<string | null>;
  /** The highest link position so far, stored across restarts. `set` rejects if it must not be accepted. */
  latest: { get(): LinkPosition | null; set(position: LinkPosition): Promise<void> };
  /** Bounds of connections that are not a plane's; tests use smaller ones than `callerBounds`. */
  bounds?: ConnectionBounds;
  clock: Clock;
  log: Logger;
}

export interface NodeServer {
  readonly port: number;
  /** See `PlaneLink.upcall`. Throws `node_unreachable` if no plane is attached. */
  upcall(method: string, params: string, token: string): Promise<unknown>;
  /** Ends the link and all connections. */
  close(): Promise<void>;
}

/** Opens the listener. Resolves when it accepts connections; throws an errno error, such as EADDRINUSE. */
export async function openNodeServer(options: NodeServerOptions): Promise<NodeServer> {
  const handlers = new Handlers(options);
  const adapter = connectNodeAdapter({
    ...GRPC_ONLY,
    acceptCompression: [],
    readMaxBytes: limits.link_message_bytes_max,
    interceptors: [guard(options)],
    contextValues: (request) => {
      const socket = 'stream' in request ? (request.stream.session?.socket ?? null) : null;
      return createContextValues()
        .set(callerSocket, socket as Socket | null)
        .set(callerConnection, (socket && connections.find(socket)) ?? null);
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
  const connections = new Connections(server, options.bounds ?? callerBounds());
  server.on('session', (session: http2.ServerHttp2Session) => {
    // Unauthenticated sessions were already closed, and any request on one throws.
    if (session.destroyed) return;
    session.setLocalWindowSize(limits.link_window_bytes);
    closeWhenIdle(session, sharedLimits.link_idle_ms);
    session.on('error', (error) => options.log.debug({ err: error }, 'a connection of the link failed'));
  });
  server.on('sessionError', () => {});
  server.on('tlsClientError', (error: Error) => {
    options.log.debug({ err: error }, 'a call to the node was rejected');
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
      connections.destroyAll();
      await closed;
    },
  };
}

function makeServer(
  tls: NodeServerOptions['tls'],
  settings: http2.Settings,
  adapter: ReturnType<typeof connectNodeAdapter>,
): http2.Http2Server | http2.Http2SecureServer {
  if (tls === null) return http2.createServer({ settings }, adapter);
  const server = http2.createSecureServer({ ...tls.options, minVersion: 'TLSv1.3', settings }, adapter);
  tls.serve?.(server);
  return server;
}

class Handlers implements ServiceImpl<typeof NodeService> {
  readonly #options: NodeServerOptions;
  readonly beginRenewal;
  readonly completeRenewal;
  #plane_link: PlaneLink | null = null;

  constructor(options: NodeServerOptions) {
    this.#options = options;
    this.beginRenewal = options.renewal.beginRenewal;
    this.completeRenewal = options.renewal.completeRenewal;
  }

  upcall(method: string, params: string, token: string): Promise<unknown> {
    if (!this.#plane_link) return Promise.reject(problems.nodeUnreachable());
    return this.#plane_link.upcall(method, params, token);
  }

  end(): void {
    this.#plane_link?.end();
  }

  // --- the link --------------------------------------------------------------------------------------------------

  attach: ServiceImpl<typeof NodeService>['attach'] = async function* (this: Handlers, requests, context) {
    const { node, instance_id, disk_id, log, latest } = this.#options;
    const incoming = requests[Symbol.asyncIterator]();
    const first = await incoming.next();
    if (first.done || first.value.body.case !== 'hello')
      throw new ConnectError('the first message is not a hello');
    const hello = first.value.body.value;
    const mismatch = versionMismatch(hello.speaks, { us: `node ${node.id}`, them: 'this plane' });
    if (mismatch) throw new Problem('bad_gateway', 'version_skew', mismatch);
    if (hello.nodeId !== node.id) {
      const message = `node id mismatch: registered ${hello.nodeId}, node says ${node.id}`;
      throw new Problem('bad_gateway', 'node_id_mismatch', message);
    }
    const position = {
      plane_id: hello.planeId,
      incarnation: safeInteger(hello.incarnation),
      epoch: safeInteger(hello.epoch),
    };
    const known = latest.get();
    if (known && !isBefore(known, position)) throw this.#refuse(position, known);
    await latest.set(position);
    // A later link may have been attached in the meantime.
    const stored = latest.get();
    if (stored && isBefore(position, stored)) throw this.#refuse(position, stored);
    this.#plane_link?.end();
    const plane_link = new PlaneLink(node, position);
    this.#plane_link = plane_link;
    const onAbort = () => plane_link.end();
    context.signal.addEventListener('abort', onAbort);
    log.info({ plane_id: position.plane_id, epoch: position.epoch }, 'plane attached');
    void plane_link.take({ [Symbol.asyncIterator]: () => incoming }).then(
      () => plane_link.end(),
      (error) => plane_link.end(error),
    );
    try {
      const value = {
        nodeId: node.id,
        instanceId: instance_id,
        diskId: disk_id,
        speaks: versionInfo(),
      };
      yield { body: { case: 'hello', value } };
      yield* plane_link.responses();
    } finally {
      context.signal.removeEventListener('abort', onAbort);
      plane_link.end();
      if (this.#plane_link === plane_link) {
        this.#plane_link = null;
        await node.detach();
        log.info({ plane_id: position.plane_id, epoch: position.epoch }, 'plane detached');
      }
    }
  };

  #refuse(position: LinkPosition, latest: LinkPosition): Problem {
    const fields = { refused: formatPosition(position), latest: formatPosition(latest) };
    this.#options.log.warn(fields, 'rejected an earlier link');
    return stale(latest);
  }

  pull: ServiceImpl<typeof NodeService>['pull'] = (requests, context) => {
    const plane_link = this.#requireLatestLink(context);
    const watch = (grown: Grown) => {
      plane_link.onSpoolGrew = grown;
    };
    return servePull(this.#options.node, requests, { watch, log: this.#options.log });
  };

  // --- commands --------------------------------------------------------------------------------------------------

  start: ServiceImpl<typeof NodeService>['start'] = async (request, context) => {
    this.#requireLatestLink(context);
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
      ...withoutNulls({
        actor_token: request.actorToken,
        step_input: request.stepInput,
        preset: request.preset,
        team_id: request.teamId,
      }),
    };
    return { session: viewToWire(await this.#options.node.start(launch)) };
  };

  stop: ServiceImpl<typeof NodeService>['stop'] = async ({ sessionId, graceMs, notAfterMs }, context) => {
    this.#requireLatestLink(context);
    // The command was delayed in transit or in a queue, and the plane may have withdrawn it.
    if (notAfterMs !== undefined && this.#options.clock.now() > safeInteger(notAfterMs))
      throw commandExpired();
    const { cleanup, survivors } = await this.#options.node.stop(sessionId, graceMs);
    return {
      ...withoutNulls({ cleanup }),
      survivors: survivors.slice(0, limits.link_survivors_max).map(BigInt),
    };
  };

  input: ServiceImpl<typeof NodeService>['input'] = async ({ sessionId, offset, data, eof }, context) => {
    this.#requireLatestLink(context);
    return { length: BigInt(await this.#options.node.input(sessionId, safeInteger(offset), data, eof)) };
  };

  getStepOutput: ServiceImpl<typeof NodeService>['getStepOutput'] = async ({ sessionId, max }, context) => {
    this.#requireLatestLink(context);
    const bounded = Math.min(max, sharedLimits.step_output_bytes_max + 1);
    const output = await this.#options.node.stepOutput(sessionId, bounded);
    return withoutNulls({ output: output as Uint8Array<ArrayBuffer> | null });
  };

  forget: ServiceImpl<typeof NodeService>['forget'] = async ({ sessionId }, context) => {
    const plane_link = this.#requireLatestLink(context);
    await this.#options.node.forget(sessionId);
    // Ends the open long-poll reads of this session.
    plane_link.onSpoolGrew(sessionId);
    return {};
  };

  forgetOwner: ServiceImpl<typeof NodeService>['forgetOwner'] = async ({ ownerId }, context) => {
    this.#requireLatestLink(context);
    await this.#options.node.forgetOwner(ownerId);
    return {};
  };

  resolveWorkdir: ServiceImpl<typeof NodeService>['resolveWorkdir'] = async (
    { workdir, toMake },
    context,
  ) => {
    this.#requireLatestLink(context);
    const { folders } = this.#options.node;
    const found = await folders.resolve(workdir, { to_create: toMake });
    const { path, below_worktree_root, claimed_by } = found;
    return { workdir: path, belowWorktreeRoot: below_worktree_root, claimedBy: claimed_by ?? '' };
  };

  createWorktree: ServiceImpl<typeof NodeService>['createWorktree'] = async (request, context) => {
    this.#requireLatestLink(context);
    const worktree = await this.#options.node.folders.createWorktree({
      agent_id: request.agentId,
      name: request.name,
      workdir: request.workdir ?? null,
      repo: request.repo ?? null,
      ref: request.ref ?? null,
      root: request.root ?? null,
      owner: request.owner,
      recorded: request.recorded,
    });
    const { workdir, repo, branch, base } = worktree;
    return { worktree: { workdir, ...withoutNulls({ repo, branch, base }) } };
  };

  removeWorktree: ServiceImpl<typeof NodeService>['removeWorktree'] = async (
    { worktree, force, owner },
    context,
  ) => {
    this.#requireLatestLink(context);
    if (!worktree) throw new ConnectError('worktree is required', Code.InvalidArgument);
    const { removed, kept_because } = await this.#options.node.folders.removeWorktree(
      worktreeFromWire(worktree),
      { force, owner },
    );
    return { removed, ...withoutNulls({ keptBecause: kept_because }) };
  };

  checkRemoval: ServiceImpl<typeof NodeService>['checkRemoval'] = async ({ worktree, owner }, context) => {
    this.#requireLatestLink(context);
    if (!worktree) throw new ConnectError('worktree is required', Code.InvalidArgument);
    const kept_because = await this.#options.node.folders.whyKept(worktreeFromWire(worktree), { owner });
    return withoutNulls({ keptBecause: kept_because });
  };

  getChanges: ServiceImpl<typeof NodeService>['getChanges'] = async (
    { workdir, base, owner, skipRemote: skip_remote },
    context,
  ) => {
    this.#requireLatestLink(context);
    const request = { workdir, base: base ?? null, owner, skip_remote };
    const changes = await this.#options.node.folders.changes(request);
    const { git, branch, head, remote, files, truncated } = changes;
    return {
      git,
      ...withoutNulls({ branch, base: changes.base, head, remote: remote && remoteToWire(remote) }),
      files: files.map(changedFileToWire),
      truncated,
    };
  };

  getChange: ServiceImpl<typeof NodeService>['getChange'] = async (
    { workdir, base, path, owner, context },
    handler,
  ) => {
    this.#requireLatestLink(handler);
    const request = { workdir, base: base ?? null, owner };
    const change = await this.#options.node.folders.change(request, path, { context });
    return { file: changedFileToWire(change), diff: change.diff, truncated: change.truncated };
  };

  async *getPatch({ workdir, base, owner }: GetPatchRequest, context: HandlerContext) {
    this.#requireLatestLink(context);
    const patch = await this.#options.node.folders.patch({ workdir, base: base ?? null, owner });
    for (let at = 0; at < patch.length; at += sharedLimits.patch_piece_bytes) {
      yield { data: patch.subarray(at, at + sharedLimits.patch_piece_bytes) as Uint8Array<ArrayBuffer> };
    }
  }

  findFiles: ServiceImpl<typeof NodeService>['findFiles'] = async ({ workdir, words, owner }, context) => {
    this.#requireLatestLink(context);
    if (words.length > sharedLimits.search_chars_max)
      throw new ConnectError('the search text is too long', Code.InvalidArgument);
    return await this.#options.node.folders.files(workdir, words, { owner });
  };

  findRepositories: ServiceImpl<typeof NodeService>['findRepositories'] = async (
    { first, owner, path },
    context,
  ) => {
    this.#requireLatestLink(context);
    const found = await this.#options.node.folders.repositories({ first, owner, path: path ?? null });
    return { ...found, repositories: found.repositories.map(repositoryToWire) };
  };

  getHealth: ServiceImpl<typeof NodeService>['getHealth'] = async ({ worktreeRoot }) => {
    const { node, clock, has_default_root, worktree_root_problem } = this.#options;
    const { uptime_seconds, sessions_live, disk } = await node.health();
    return {
      nodeId: node.id,
      speaks: versionInfo(),
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
      ...withoutNulls({
        worktreeRootProblem: worktreeRoot === undefined ? null : await worktree_root_problem(worktreeRoot),
      }),
    };
  };

  probe: ServiceImpl<typeof NodeService>['probe'] = async ({ programs }, context) => {
    this.#requireLatestLink(context);
    const questions = programs.map(({ program, versionArgv, env, files }) => ({
      program,
      version_argv: versionArgv,
      env,
      files,
    }));
    return { findings: (await this.#options.node.probe(questions)).map(findingToWire) };
  };

  /**
   * Returns the attached link. Throws `not_attached` if there is none, and `stale_link` for a command of another link,
   * whose plane does not know yet that it was replaced.
   */
  #requireLatestLink({ requestHeader }: HandlerContext): PlaneLink {
    const plane_link = this.#plane_link;
    if (!plane_link) throw unreachable();
    if (requestHeader.get(LINK_HEADER) !== formatPosition(plane_link.position))
      throw stale(plane_link.position);
    return plane_link;
  }
}

function unreachable(): Problem {
  return new Problem('bad_gateway', 'not_attached', 'no plane is attached to this node');
}

function commandExpired(): Problem {
  return new Problem('bad_gateway', COMMAND_EXPIRED, 'the command came too late');
}

function stale(latest: LinkPosition): Problem {
  const message = `a later link is known: plane ${latest.plane_id}, incarnation ${latest.incarnation}, epoch ${latest.epoch}`;
  return new Problem('bad_gateway', 'stale_link', message);
}
