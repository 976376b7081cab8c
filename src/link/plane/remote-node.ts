/**
 * A node on another machine, as a `Node`. Commands are gRPC calls, bytes come over a separate connection, and facts and
 * wakes come from the attached link. It has at most one link, which only `attach` opens; without a link, every
 * operation fails as unreachable.
 */

import { posix } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import type { StreamName } from '../../core/event.ts';
import type {
  Changes,
  ChangesListRequest,
  ChangesRequest,
  DiffOptions,
  FileChange,
  Folders,
  FoundFiles,
  FoundRepositories,
  Link,
  Node,
  NodeSink,
  ProgramFinding,
  ProgramQuestion,
  QueueOwner,
  RepositoriesRequest,
  ResolvedWorkdir,
  SessionView,
  StopReport,
  Worktree,
  WorktreeRemoval,
  WorktreeRequest,
} from '../../core/node.ts';
import { Problem, problems, worktreeRootNotSafe } from '../../core/problem.ts';
import type { Launch, StreamSizes } from '../../core/session.ts';
import { limits } from '../limits.ts';
import type { Worktree as WireWorktree } from '../proto/node_pb.ts';
import {
  absolutePath,
  COMMAND_EXPIRED,
  changedFileFromWire,
  cleanupFromWire,
  findingsFromWire,
  ProtocolError,
  remoteFromWire,
  repositoriesFromWire,
  safeInteger,
  toProblem,
  truncatedOrNull,
  viewFromWire,
  withoutNulls,
} from '../wire.ts';
import { Attachment, type AttachmentOptions, type NodeIdentity } from './attachment.ts';
import type { Connection } from './connection.ts';
import { askHealth, type RemoteHealth } from './health.ts';
import { Reachability } from './reachability.ts';

export interface RemoteNodeOptions {
  id: string;
  log: Logger;
  /** Opens a connection to the node and verifies its identity. Throws a Problem. */
  dial(signal: AbortSignal): Promise<Connection>;
  /** Returns the position of a new link; every position is later than all earlier ones. */
  nextPosition(): Promise<AttachmentOptions['position']>;
  accept: AttachmentOptions['accept'];
  upcall: AttachmentOptions['upcall'];
  /** The base for derived workdirs that is set in the registry; null: the node's own. */
  worktree_root(): string | null;
  /** Called once for each attached link when it ends. */
  onDown(reason: Error): void;
  /** Called when the node answers over the same link after its answer was overdue. */
  onBack(): void;
}

/** For calls that create, check or remove a checkout, which may be large. */
const CHECKOUT_CALL_MS = sharedLimits.git_checkout_timeout_ms + limits.link_call_ms;

export class RemoteNode implements Node {
  readonly id: string;
  readonly folders: Folders;
  readonly #options: RemoteNodeOptions;
  #link: Attachment | null = null;
  #reachability: Reachability | null = null;
  /** The node's clock when it was last known (Unix ms), and when it was read (`performance.now()`). */
  #clock: { node_ms: number; read_at: number } | null = null;
  /** Aborts a connection attempt that is no longer wanted. */
  #closing = new AbortController();

  constructor(options: RemoteNodeOptions) {
    this.id = options.id;
    this.#options = options;
    this.folders = new RemoteFolders(options.id, (method) => this.#call(method), options.worktree_root);
  }

  get link(): Link | null {
    return this.#link;
  }

  /** The node that answered, while a link is attached. */
  get identity(): NodeIdentity | null {
    return this.#link?.identity ?? null;
  }

  /** The connection for commands, while a link is attached. */
  get control(): Connection | null {
    return this.#link?.control ?? null;
  }

  /** `performance.now()` of the last message from the node, while a link is attached. */
  get last_heard_at(): number | null {
    return this.#link?.last_heard_at ?? null;
  }

  /** The round trips of the link's latest heartbeats in ms, oldest first; none without a link. */
  get latencies_ms(): readonly number[] {
    return this.#link?.control.latencies_ms ?? [];
  }

  async attach(sink: NodeSink): Promise<void> {
    await this.detach();
    const closing = new AbortController();
    this.#closing = closing;
    const link = await this.#connect(closing.signal);
    closing.signal.addEventListener('abort', () => link.end());
    try {
      const { views, unreadable, follow } = await link.open();
      if (closing.signal.aborted) throw problems.nodeUnreachable();
      this.#link = link;
      this.#reachability = new Reachability(() => link.control.ping(), this.#options.onBack);
      void link.ended.then((reason) => {
        if (this.#link !== link) return;
        this.#link = null;
        this.#options.onDown(reason);
      });
      await sink.snapshot(views, link, unreadable);
      follow(sink);
      for (const { session_id, phase } of views) if (phase !== 'ended') sink.wake(session_id);
    } catch (error) {
      link.end();
      throw error;
    }
  }

  async detach(): Promise<void> {
    this.#link = null;
    this.#closing.abort();
  }

  async reach(): Promise<void> {
    if (!this.#link || !this.#reachability) throw problems.nodeUnreachable();
    await this.#reachability.reach();
  }

  async start(launch: Launch): Promise<SessionView> {
    const { session } = await this.#call(({ commands }, options) =>
      commands.start(
        {
          sessionId: launch.session_id,
          planeId: launch.plane_id,
          agentId: launch.agent_id,
          agentName: launch.agent_name,
          ownerId: launch.owner_id,
          workdir: launch.workdir,
          argv: launch.argv,
          env: launch.env,
          stdin: launch.stdin,
          onExit: launch.on_exit,
          ...withoutNulls({ actorToken: launch.actor_token, stepInput: launch.step_input }),
          ...(launch.preset != null && { preset: launch.preset }),
          ...(launch.team_id != null && { teamId: launch.team_id }),
        },
        { ...options, timeoutMs: limits.link_start_ms },
      ),
    );
    if (!session) throw problems.nodeUnreachable();
    return viewFromWire(session);
  }

  async stop(session_id: string, grace_ms: number): Promise<StopReport> {
    const { cleanup, survivors } = await this.#call(({ commands }, options) =>
      commands.stop(
        { sessionId: session_id, graceMs: grace_ms, ...this.#commandExpiry() },
        { ...options, timeoutMs: grace_ms + limits.link_start_ms },
      ),
    ).catch(async (error: unknown) => {
      // The node's clock may have been set since it was read. The next attempt uses the new time.
      if (error instanceof Problem && error.code === COMMAND_EXPIRED) await this.health();
      throw error;
    });
    return { cleanup: cleanupFromWire(cleanup), survivors: survivors.map(safeInteger) };
  }

  async input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    const send = async (from: number, to: number, ends: boolean) => {
      const piece = data.subarray(from, to) as Uint8Array<ArrayBuffer>;
      const request = { sessionId: session_id, offset: BigInt(offset + from), data: piece, eof: ends };
      const { length } = await this.#call(({ commands }, options) => commands.input(request, options));
      return safeInteger(length);
    };
    // Sends small pieces, and only those that are missing, so that the upload completes even over links that keep
    // breaking.
    let done = 0;
    if (data.length > limits.link_input_bytes) {
      done = Math.min(Math.max((await send(0, 0, false)) - offset, 0), data.length);
    }
    for (;;) {
      const to = Math.min(done + limits.link_input_bytes, data.length);
      const length = await send(done, to, eof && to === data.length);
      if (to === data.length) return length;
      done = to;
    }
  }

  async read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    if (!this.#link) throw problems.nodeUnreachable();
    return this.#link.pulls.read(session_id, stream, from, max, into);
  }

  /** Sent after a short delay. If a message is lost, the next one makes up for it. */
  committed(session_id: string, offsets: StreamSizes, fact: number): void {
    this.#link?.committed(session_id, offsets, fact);
  }

  async stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    const request = { sessionId: session_id, max };
    const { output } = await this.#call(({ commands }, options) =>
      commands.getStepOutput(request, options).catch((error: unknown) => {
        // An older node does not return output.
        if (ConnectError.from(error).code === Code.Unimplemented) return { output: undefined };
        throw error;
      }),
    );
    return output?.subarray(0, max) ?? null;
  }

  async forget(session_id: string): Promise<void> {
    await this.#call((link, options) => {
      link.forget(session_id);
      return link.commands.forget({ sessionId: session_id }, options);
    });
  }

  async forgetOwner(owner_id: string): Promise<void> {
    await this.#call(({ commands }, options) => commands.forgetOwner({ ownerId: owner_id }, options));
  }

  async health(): Promise<RemoteHealth> {
    const link = this.#link;
    if (!link) throw problems.nodeUnreachable();
    const { headers, signal } = link;
    const options = { headers, signal, timeoutMs: limits.link_call_ms };
    return askHealth(link.control.transport, this.#options.worktree_root(), options, (node_ms) => {
      this.#clock = { node_ms, read_at: performance.now() };
    });
  }

  async probe(programs: readonly ProgramQuestion[]): Promise<ProgramFinding[]> {
    const questions = programs.map(({ program, version_argv, env, files }) => ({
      program,
      versionArgv: [...version_argv],
      env: [...env],
      files: [...files],
    }));
    return this.#call(async ({ commands }, options) => {
      const asked = { ...options, timeoutMs: limits.probe_call_ms };
      const { findings } = await commands.probe({ programs: questions }, asked);
      return findingsFromWire(findings, programs);
    });
  }

  /**
   * The time on the node's clock (Unix ms) at which a command sent now expires; undefined while that clock is unknown.
   */
  #commandExpiry(): { notAfterMs?: bigint } {
    if (this.#clock === null) return {};
    const { node_ms, read_at } = this.#clock;
    const not_after_ms = node_ms + performance.now() - read_at + sharedLimits.node_answer_ms;
    return { notAfterMs: BigInt(Math.round(not_after_ms)) };
  }

  /** Opens the connections one after the other, because the first may be the one that lets the node join. */
  async #connect(signal: AbortSignal): Promise<Attachment> {
    const { id, log, dial, nextPosition, accept, upcall } = this.#options;
    const opened: Connection[] = [];
    try {
      const control = await dial(signal);
      opened.push(control);
      const bytes = await dial(signal);
      opened.push(bytes);
      const position = await nextPosition();
      signal.throwIfAborted();
      return new Attachment({ node_id: id, position, log, control, bytes, accept, upcall });
    } catch (error) {
      for (const connection of opened) connection.close();
      throw error;
    }
  }

  async #call<T>(method: CallOf<T>): Promise<T> {
    const link = this.#link;
    if (!link) throw problems.nodeUnreachable();
    try {
      const { headers, signal } = link;
      return await method(link, { headers, signal, timeoutMs: limits.link_call_ms });
    } catch (error) {
      if (error instanceof ProtocolError)
        this.#options.log.warn({ node_id: this.id, err: error }, 'node breaks the protocol');
      // An error of this process, which says nothing about the link.
      throw error instanceof TypeError || error instanceof RangeError ? error : toProblem(error);
    }
  }
}

type CallOf<T> = (
  link: Attachment,
  options: { headers: Record<string, string>; signal: AbortSignal; timeoutMs: number },
) => Promise<T>;

class RemoteFolders implements Folders {
  readonly #node_id: string;
  readonly #call: <T>(method: CallOf<T>) => Promise<T>;
  readonly #root: () => string | null;

  constructor(node_id: string, call: <T>(method: CallOf<T>) => Promise<T>, root: () => string | null) {
    this.#node_id = node_id;
    this.#call = call;
    this.#root = root;
  }

  async resolve(workdir: string, { to_create = false } = {}): Promise<ResolvedWorkdir> {
    const found = await this.#call(async ({ commands }, options) => {
      const asked = { workdir, toMake: to_create };
      const { workdir: path, belowWorktreeRoot, claimedBy } = await commands.resolveWorkdir(asked, options);
      return { path: absolutePath(path), belowWorktreeRoot, claimed_by: claimedBy || null };
    }).catch((error: unknown) => {
      // Nodes that do not support `to_make` report a missing folder. They check links into worktrees once the folder
      // exists.
      const missing = error instanceof Problem && error.code === problems.workdirMissing().code;
      if (!to_create || !missing) throw error;
      return { path: normalized(workdir), belowWorktreeRoot: false, claimed_by: null };
    });
    const root = this.#root();
    // The node rejects paths below the registry's root.
    const below = root !== null && `${found.path}/`.startsWith(`${root}/`);
    const { path, claimed_by } = found;
    return { path, below_worktree_root: found.belowWorktreeRoot || below, claimed_by };
  }

  async createWorktree(request: WorktreeRequest): Promise<Worktree> {
    const { agent_id, name, workdir, repo, ref, owner, recorded } = request;
    const root = request.root ?? this.#root();
    // The registry's root may not exist on the node yet, so the node cannot recognize it.
    if (root !== null && workdir && `${root}/`.startsWith(`${normalized(workdir)}/`))
      throw problems.workdirNotSafe();
    return await this.#call(async ({ commands }, options) => {
      const { worktree } = await commands.createWorktree(
        { agentId: agent_id, name, ...withoutNulls({ workdir, repo, ref, root, owner, recorded }) },
        { ...options, timeoutMs: CHECKOUT_CALL_MS },
      );
      if (!worktree) throw problems.nodeUnreachable();
      return worktreeFromWire(worktree);
    }).catch((error: unknown) => {
      // Leave the path out of the error. The client did not send it and could not interpret it.
      const derived = root !== null && (workdir === null || workdir === '');
      const outside = error instanceof Problem && error.code === problems.workdirNotSafe().code;
      throw derived && outside ? worktreeRootNotSafe(root, this.#node_id) : error;
    });
  }

  async removeWorktree(
    worktree: Worktree,
    { force, owner }: { force: boolean } & QueueOwner,
  ): Promise<WorktreeRemoval> {
    const request = { worktree: worktreeToWire(worktree), force, ...withoutNulls({ owner }) };
    const { removed, keptBecause } = await this.#call(({ commands }, options) =>
      commands.removeWorktree(request, { ...options, timeoutMs: CHECKOUT_CALL_MS }),
    );
    return { removed, kept_because: keptBecause ?? null };
  }

  async whyKept(worktree: Worktree, { owner }: QueueOwner = {}): Promise<string | null> {
    const request = { worktree: worktreeToWire(worktree), ...withoutNulls({ owner }) };
    const { keptBecause } = await this.#call(({ commands }, options) =>
      commands.checkRemoval(request, { ...options, timeoutMs: CHECKOUT_CALL_MS }),
    );
    return keptBecause ?? null;
  }

  async changes({ workdir, base, owner, skip_remote = false }: ChangesListRequest): Promise<Changes> {
    return await this.#call(async ({ commands }, options) => {
      const asked = { ...options, timeoutMs: limits.link_start_ms };
      const request = { workdir, skipRemote: skip_remote, ...withoutNulls({ base, owner }) };
      const changes = await commands.getChanges(request, asked);
      return {
        git: changes.git,
        branch: truncatedOrNull(changes.branch),
        base: truncatedOrNull(changes.base),
        head: truncatedOrNull(changes.head),
        remote: remoteFromWire(changes.remote),
        files: changes.files.slice(0, sharedLimits.changed_files_max).map(changedFileFromWire),
        truncated: changes.truncated || changes.files.length > sharedLimits.changed_files_max,
      };
    });
  }

  async change(
    { workdir, base, owner }: ChangesRequest,
    path: string,
    { context }: DiffOptions = {},
  ): Promise<FileChange> {
    return await this.#call(async ({ commands }, options) => {
      const asked = { ...options, timeoutMs: limits.link_start_ms };
      const request = { workdir, path, ...withoutNulls({ base, owner, context }) };
      const { file, diff, truncated } = await commands.getChange(request, asked);
      if (!file) throw problems.nodeUnreachable();
      return { ...changedFileFromWire(file), diff, truncated };
    });
  }

  async patch({ workdir, base, owner }: ChangesRequest): Promise<Uint8Array> {
    return this.#call(async ({ commands }, options) => {
      const pieces: Uint8Array[] = [];
      let left = sharedLimits.patch_bytes_max;
      const request = { workdir, ...withoutNulls({ base, owner }) };
      const asked = { ...options, timeoutMs: limits.link_start_ms };
      for await (const { data } of commands.getPatch(request, asked)) {
        left -= data.length;
        if (left < 0) throw problems.patchTooLarge();
        pieces.push(data);
      }
      return Buffer.concat(pieces);
    });
  }

  async files(workdir: string, query: string, { owner }: QueueOwner = {}): Promise<FoundFiles> {
    const { git, paths, truncated } = await this.#call(({ commands }, options) =>
      commands.findFiles(
        { workdir, words: query, ...withoutNulls({ owner }) },
        { ...options, timeoutMs: limits.link_start_ms },
      ),
    );
    return { git, paths: paths.slice(0, sharedLimits.found_files_max), truncated };
  }

  async repositories({ first, owner, path }: RepositoriesRequest): Promise<FoundRepositories> {
    return this.#call(async ({ commands }, options) =>
      repositoriesFromWire(
        await commands.findRepositories(
          { first: [...first], ...withoutNulls({ owner, path }) },
          { ...options, timeoutMs: limits.link_start_ms },
        ),
      ),
    );
  }
}

/** Resolves `..` and removes superfluous slashes. */
function normalized(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/+$/, '');
}

function worktreeToWire({ workdir, repo, branch, base }: Worktree) {
  return { workdir, ...withoutNulls({ repo, branch, base }) };
}

/** Throws a ProtocolError for a malformed folder. */
export function worktreeFromWire({ workdir, repo, branch, base }: WireWorktree): Worktree {
  return { workdir: absolutePath(workdir), repo: repo ?? null, branch: branch ?? null, base: base ?? null };
}
