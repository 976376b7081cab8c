/**
 * A node on another machine, as `Node`: commands as gRPC calls, bytes over a connection of their own, facts and wakes from
 * the attached link. It holds at most one link and makes none by itself; without one, everything fails as unreachable.
 */

import { Code, ConnectError } from '@connectrpc/connect';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { Worktree as WireWorktree } from '../contract/gen/node_pb.ts';
import type { StreamName } from '../domain/event.ts';
import type {
  Changes,
  ChangesRequest,
  FileChange,
  Folders,
  FoundFiles,
  Node,
  NodeSink,
  ProgramFinding,
  ProgramQuestion,
  ResolvedWorkdir,
  SessionView,
  StopReport,
  Worktree,
  WorktreeRequest,
} from '../domain/node.ts';
import { Problem, problems, worktreeRootNotSafe } from '../domain/problem.ts';
import type { Launch, StreamSizes } from '../domain/session.ts';
import { Attachment, type AttachmentOptions, type NodeIdentity } from './attachment.ts';
import type { Connection } from './connection.ts';
import { askHealth, type RemoteHealth } from './health.ts';
import { Reachability } from './reachability.ts';
import {
  COMMAND_EXPIRED,
  changedFileFromWire,
  cleanupFromWire,
  findingsFromWire,
  present,
  toProblem,
  viewFromWire,
  whole,
} from './wire.ts';

export interface RemoteNodeOptions {
  id: string;
  log: Logger;
  /** A new connection, proven to be to the right node. Throws a Problem. */
  dial(signal: AbortSignal): Promise<Connection>;
  /** The place of a new link; every one is later than all before. */
  nextPosition(): Promise<AttachmentOptions['position']>;
  accept: AttachmentOptions['accept'];
  upcall: AttachmentOptions['upcall'];
  /** The registry's base for derived workdirs; null: the node's own. */
  worktree_root(): string | null;
  /** The link is over; called once per link that was attached. */
  onDown(reason: Error): void;
  /** Over a link that lasted, the node answers again after it owed an answer for too long. */
  onBack(): void;
}

export class RemoteNode implements Node {
  readonly id: string;
  readonly folders: Folders;
  readonly #options: RemoteNodeOptions;
  #link: Attachment | null = null;
  #reachability: Reachability | null = null;
  /** What the node said last of its clock (Unix ms), and when (`performance.now()`). */
  #clock: { node_ms: number; read_at: number } | null = null;
  /** Aborts a connection that is being made when it is no longer wanted. */
  #closing = new AbortController();

  constructor(options: RemoteNodeOptions) {
    this.id = options.id;
    this.#options = options;
    this.folders = new RemoteFolders(options.id, (method) => this.#call(method), options.worktree_root);
  }

  /** Who answered last, while a link stands. */
  get identity(): NodeIdentity | null {
    return this.#link?.identity ?? null;
  }

  /** The connection that commands go over, while a link stands. */
  get control(): Connection | null {
    return this.#link?.control ?? null;
  }

  /** `performance.now()` of the last sign of life, while a link stands. */
  get heard_at(): number | null {
    return this.#link?.heard_at ?? null;
  }

  async attach(sink: NodeSink): Promise<void> {
    await this.detach();
    const closing = new AbortController();
    this.#closing = closing;
    const link = await this.#connect(closing.signal);
    closing.signal.addEventListener('abort', () => link.end());
    try {
      const { views, follow } = await link.open();
      if (closing.signal.aborted) throw problems.nodeUnreachable();
      this.#link = link;
      this.#reachability = new Reachability(() => link.control.ping(), this.#options.onBack);
      void link.ended.then((reason) => {
        if (this.#link !== link) return;
        this.#link = null;
        this.#options.onDown(reason);
      });
      await sink.snapshot(views);
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
          ...present({ actorToken: launch.actor_token, stepInput: launch.step_input }),
          ...(launch.preset != null && { preset: launch.preset }),
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
        { sessionId: session_id, graceMs: grace_ms, ...this.#givenUpAt() },
        { ...options, timeoutMs: grace_ms + limits.link_start_ms },
      ),
    ).catch(async (error: unknown) => {
      // Its clock was set since we read it, perhaps: the next try knows the new one.
      if (error instanceof Problem && error.code === COMMAND_EXPIRED) await this.health();
      throw error;
    });
    return { cleanup: cleanupFromWire(cleanup), survivors: survivors.map(whole) };
  }

  async input(session_id: string, offset: number, data: Uint8Array, eof: boolean): Promise<number> {
    const send = async (from: number, to: number, ends: boolean) => {
      const piece = data.subarray(from, to) as Uint8Array<ArrayBuffer>;
      const request = { sessionId: session_id, offset: BigInt(offset + from), data: piece, eof: ends };
      const { length } = await this.#call(({ commands }, options) => commands.input(request, options));
      return whole(length);
    };
    // In small pieces, and only what is not there yet: also over a link that never lasts, all of it arrives.
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

  /** Told in a moment; a lost one is told again by the next. */
  committed(session_id: string, offsets: StreamSizes, fact: number): void {
    this.#link?.committed(session_id, offsets, fact);
  }

  async stepOutput(session_id: string, max: number): Promise<Uint8Array | null> {
    const request = { sessionId: session_id, max };
    const { output } = await this.#call(({ commands }, options) =>
      commands.getStepOutput(request, options).catch((error: unknown) => {
        // An older node leaves no output.
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

  /** The node's clock (Unix ms) when a command that is sent now is given up; undefined while the clock is not known. */
  #givenUpAt(): { notAfterMs?: bigint } {
    if (this.#clock === null) return {};
    const { node_ms, read_at } = this.#clock;
    const not_after_ms = node_ms + performance.now() - read_at + limits.node_answer_ms;
    return { notAfterMs: BigInt(Math.round(not_after_ms)) };
  }

  /** One connection after the other: the first may be the one that lets the node join. */
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
      throw toProblem(error);
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

  async resolve(workdir: string): Promise<ResolvedWorkdir> {
    const found = await this.#call(({ commands }, options) => commands.resolveWorkdir({ workdir }, options));
    const root = this.#root();
    // The node does not know the root that the registry names for it.
    const below = root !== null && `${found.workdir}/`.startsWith(`${root}/`);
    return { path: found.workdir, below_worktree_root: found.belowWorktreeRoot || below };
  }

  async createWorktree(request: WorktreeRequest): Promise<Worktree> {
    const { agent_id, name, workdir, repo, ref } = request;
    const root = request.root ?? this.#root();
    const { worktree } = await this.#call(({ commands }, options) =>
      commands.createWorktree(
        { agentId: agent_id, name, ...present({ workdir, repo, ref, root }) },
        { ...options, timeoutMs: limits.git_checkout_timeout_ms + limits.link_call_ms },
      ),
    ).catch((error: unknown) => {
      // No path of the request's: whoever made it cannot know what is meant.
      const derived = root !== null && (workdir === null || workdir === '');
      const outside = error instanceof Problem && error.code === problems.workdirNotSafe().code;
      throw derived && outside ? worktreeRootNotSafe(root, this.#node_id) : error;
    });
    if (!worktree) throw problems.nodeUnreachable();
    return worktreeFromWire(worktree);
  }

  async removeWorktree(
    worktree: Worktree,
    { force }: { force: boolean },
  ): Promise<{ removed: boolean; kept_because: string | null }> {
    const { workdir, repo, branch, base } = worktree;
    const { removed, keptBecause } = await this.#call(({ commands }, options) =>
      commands.removeWorktree({ worktree: { workdir, ...present({ repo, branch, base }) }, force }, options),
    );
    return { removed, kept_because: keptBecause ?? null };
  }

  async changes({ workdir, base }: ChangesRequest): Promise<Changes> {
    const changes = await this.#call(({ commands }, options) =>
      commands.getChanges({ workdir, ...present({ base }) }, { ...options, timeoutMs: limits.link_start_ms }),
    );
    return {
      git: changes.git,
      branch: changes.branch ?? null,
      base: changes.base ?? null,
      head: changes.head ?? null,
      files: changes.files.map(changedFileFromWire),
      truncated: changes.truncated,
    };
  }

  async change({ workdir, base }: ChangesRequest, path: string): Promise<FileChange> {
    const { file, diff, truncated } = await this.#call(({ commands }, options) =>
      commands.getChange(
        { workdir, path, ...present({ base }) },
        { ...options, timeoutMs: limits.link_start_ms },
      ),
    );
    if (!file) throw problems.nodeUnreachable();
    return { ...changedFileFromWire(file), diff, truncated };
  }

  async files(workdir: string, words: string): Promise<FoundFiles> {
    const { git, paths, truncated } = await this.#call(({ commands }, options) =>
      commands.findFiles({ workdir, words }, { ...options, timeoutMs: limits.link_start_ms }),
    );
    return { git, paths: paths.slice(0, limits.found_files_max), truncated };
  }
}

export function worktreeFromWire({ workdir, repo, branch, base }: WireWorktree): Worktree {
  return { workdir, repo: repo ?? null, branch: branch ?? null, base: base ?? null };
}
