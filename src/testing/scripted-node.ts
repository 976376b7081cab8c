/** A node without processes: it records the sessions that are started, and reports only what a test scripts. */
import type { StreamName } from '../core/event.ts';
import {
  directLink,
  type Folders,
  type Link,
  type Node,
  type NodeSink,
  type SessionFact,
  type SessionView,
  type StopReport,
} from '../core/node.ts';
import { Problem, problems } from '../core/problem.ts';
import type { Launch, Leftover } from '../core/session.ts';

type Body = SessionFact['body'];
const NOTHING = Buffer.alloc(0);

export class ScriptedNode implements Node {
  readonly id = 'main';
  link: Link | null = directLink('main');
  readonly views = new Map<string, SessionView>();
  folders = {
    resolve: async (path: string) => ({ path, below_worktree_root: false, claimed_by: null }),
    createWorktree: async ({ workdir }) => ({ workdir: workdir!, repo: null, branch: null, base: null }),
  } as Folders;
  /** The step outputs of sessions. */
  readonly outputs = new Map<string, Buffer>();
  /** The launches of sessions. */
  readonly launches = new Map<string, Launch>();
  readonly #stdout = new Map<string, Buffer>();
  readonly #stdin = new Map<string, Buffer>();
  #sink: NodeSink | null = null;

  async attach(sink: NodeSink): Promise<void> {
    this.#sink = sink;
    await sink.snapshot([...this.views.values()], this.link!, []);
  }

  async detach(): Promise<void> {
    this.#sink = null;
  }

  /** Reports all sessions, or only these, as when a link is opened. */
  async sendSnapshot(link: Link, views = [...this.views.values()], unreadable: string[] = []): Promise<void> {
    await this.#sink!.snapshot(views, link, unreadable);
  }

  /** Reports the next fact of a session. */
  sendFact(session_id: string, body: Body): void {
    const view = this.views.get(session_id)!;
    const fact = { session_id, number: view.facts.length + 1, at_ms: 0, body };
    view.facts.push(fact);
    if (body.kind === 'started') view.phase = 'running';
    if (body.kind === 'ended') [view.phase, view.end] = ['ended', body.end];
    this.#sink?.fact(fact);
  }

  /** Ends the session's process, after everything that it wrote is in its spool. */
  end(session_id: string, exit_code: number | null): void {
    this.sendFact(session_id, ended(exit_code, this.#stdout.get(session_id)?.length));
  }

  /** Writes to the session's stdout. */
  write(session_id: string, bytes: Uint8Array): void {
    this.#stdout.set(session_id, Buffer.concat([this.#stdout.get(session_id) ?? NOTHING, bytes]));
    this.#sink?.wake(session_id);
  }

  /** Replaces everything that the session has written to stdout, as another program could. */
  overwrite(session_id: string, bytes: Uint8Array): void {
    this.#stdout.set(session_id, Buffer.from(bytes));
    this.#sink?.wake(session_id);
  }

  /** Everything written to the session's stdin so far. */
  stdin(session_id: string): Buffer {
    return this.#stdin.get(session_id) ?? NOTHING;
  }

  async start(launch: Launch): Promise<SessionView> {
    const known = this.views.get(launch.session_id);
    if (known) return known;
    await this.folders.resolve(launch.workdir);
    this.launches.set(launch.session_id, launch);
    this.addSession(launch);
    this.sendFact(launch.session_id, { kind: 'started', pid: 7, started_at_ms: 1 });
    return this.views.get(launch.session_id)!;
  }

  addSession(launch: Launch): void {
    const view = { session_id: launch.session_id, launch: { ...launch, env_keys: [] }, phase: 'starting' };
    const nothing = { pid: null, started_at_ms: null, end: null, stdin_bytes: 0, facts: [] };
    this.views.set(launch.session_id, { ...view, ...nothing } as SessionView);
  }

  async stop(session_id: string): Promise<StopReport> {
    if (!this.views.has(session_id)) throw problems.sessionNotFound();
    this.end(session_id, null);
    return { cleanup: 'swept', survivors: [] };
  }

  /** Appends input once, even if it is sent again, like a real node. */
  input = async (session_id: string, offset: number, data: Uint8Array) => {
    const before = this.stdin(session_id);
    if (offset > before.length) throw new Problem('conflict', 'stdin_gap', `stdin ends at ${before.length}`);
    const after = Buffer.concat([before, data.subarray(before.length - offset)]);
    this.#stdin.set(session_id, after);
    this.views.get(session_id)!.stdin_bytes = after.length;
    return after.length;
  };

  async read(session_id: string, stream: StreamName, from: number, max: number): Promise<Uint8Array> {
    if (!this.views.has(session_id)) throw problems.sessionNotFound();
    const spool = stream === 'stdout' ? (this.#stdout.get(session_id) ?? NOTHING) : NOTHING;
    if (from > spool.length) throw problems.outputLost();
    return spool.subarray(from, from + max);
  }

  async stepOutput(session_id: string): Promise<Uint8Array | null> {
    if (!this.views.has(session_id)) throw problems.sessionNotFound();
    return this.outputs.get(session_id) ?? null;
  }

  committed(): void {}

  async forget(session_id: string): Promise<void> {
    if (this.views.get(session_id)?.phase !== 'ended') throw problems.agentRunning();
    this.views.delete(session_id);
  }

  forgetOwner = async () => {};
  reach = async () => {};
  health = async () => ({ version: '', uptime_seconds: 0, sessions_live: 0, disk: {} as never });
  probe = async () => [];
}

export function ended(exit_code: number | null, stdout = 0, leftovers: Leftover[] = []): Body {
  const exit = {
    exit_code,
    exit_signal: null,
    reason: exit_code ? ('exit_code' as const) : null,
    message: null,
  };
  const sizes = { stdout, stderr: 0 };
  return { kind: 'ended', end: { exit, sizes, cleanup: 'swept', leftovers, ended_at_ms: 2 } };
}
