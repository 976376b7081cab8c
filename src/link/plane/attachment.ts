/**
 * One link from its hello to its end: snapshot, facts and wakes from the node; acknowledgements and replies to it.
 * Any error ends the link. The next one starts from the node's disk and the plane's database.
 *
 *   new ── open(): hello sent ─▶ hello accepted ─▶ snapshot read ── follow() ─▶ following
 *     └──────────────┴─────────────────┴────────────────┴────────────────────────┴──▶ ended
 *
 * It ends once: a connection closes, the node does not answer in time, breaks the protocol, or is rejected, or `end()`
 * is called. Nothing leads back; `RemoteNode.attach` creates another attachment.
 */
import { create } from '@bufbuild/protobuf';
import { type Client, createClient } from '@connectrpc/connect';
import { sleep, Wake } from '../../base/async.ts';
import { KIB, limits as sharedLimits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { type StreamName, streamNames } from '../../core/event.ts';
import type { Link, NodeSink, SessionFact, SessionView } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';
import type { StreamSizes } from '../../core/session.ts';
import { limits } from '../limits.ts';
import {
  type AttachRequest,
  AttachRequestSchema,
  type AttachResponse,
  type NodeHello,
  NodeService,
  type Upcall,
} from '../proto/node_pb.ts';
import {
  factFromWire,
  formatPosition,
  LINK_HEADER,
  type LinkPosition,
  ProtocolError,
  paramsFromWire,
  refusalToWire,
  toProblem,
  versionInfo,
  versionMismatch,
  viewFromWire,
} from '../wire.ts';
import type { Connection } from './connection.ts';
import { Pulls } from './pulls.ts';

export interface AttachmentOptions {
  node_id: string;
  position: LinkPosition;
  log: Logger;
  /** For commands, facts and wakes. */
  control: Connection;
  /** For bytes of spools only, so that they never delay commands. */
  bytes: Connection;
  /** May reject the node that answered, by throwing a Problem. */
  accept(hello: NodeIdentity): Promise<void> | void;
  /** Handles an actor's call on the node; returns JSON or throws a Problem. */
  upcall(call: { method: string; params: unknown; token: string }): Promise<unknown>;
}

/** The node that answered. */
export interface NodeIdentity {
  node_id: string;
  instance_id: string;
  disk_id: string;
  version: string;
}

export class Attachment implements Link {
  readonly node_id: string;
  readonly position: LinkPosition;
  readonly commands: Client<typeof NodeService>;
  readonly headers: Record<string, string>;
  readonly pulls = new Pulls((session_id) => this.#sink?.wake(session_id));
  /** Resolves once, with the reason why the link ended. */
  readonly ended: Promise<Error>;
  readonly #options: AttachmentOptions;
  readonly #stop = new AbortController();
  readonly #wake = new Wake();
  readonly #committed = new Map<string, { offsets: StreamSizes; fact: number }>();
  readonly #replies: AttachRequest[] = [];
  /** The last fact seen of each session; facts must be consecutive. */
  readonly #facts = new Map<string, number>();
  /** The offsets last acknowledged to the node, by session. */
  readonly #acknowledged = new Map<string, { offsets: StreamSizes; fact: number }>();
  #sink: NodeSink | null = null;
  #upcalls = 0;
  #end!: (reason: Error) => void;
  #identity: NodeIdentity | null = null;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.node_id = options.node_id;
    this.position = options.position;
    this.headers = { [LINK_HEADER]: formatPosition(options.position) };
    this.commands = createClient(NodeService, options.control.transport);
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    void this.ended.then(() => {
      this.#stop.abort();
      this.pulls.end();
      options.control.close();
      options.bytes.close();
    });
    for (const connection of [options.control, options.bytes]) {
      void connection.closed.then((error) => this.#end(error ?? problems.nodeUnreachable()));
    }
  }

  get identity(): NodeIdentity {
    return this.#identity!;
  }

  get control(): Connection {
    return this.#options.control;
  }

  /** Aborts when the link ends. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** The time of the last message from the node, in ms of `performance.now()`. */
  get last_heard_at(): number {
    return Math.max(this.#options.control.last_heard_at, this.#options.bytes.last_heard_at);
  }

  /** Ends the link and closes both connections. Idempotent; the first reason counts. */
  end(reason: Error = problems.nodeUnreachable()): void {
    this.#end(reason);
  }

  /** Sends hello and reads the snapshot; later messages wait for `follow`. Throws a Problem. */
  async open(): Promise<{
    views: SessionView[];
    unreadable: string[];
    follow(sink: NodeSink): void;
  }> {
    const timer = setTimeout(() => this.end(), sharedLimits.link_hello_ms);
    try {
      const responses = this.commands
        .attach(this.#requests(), { signal: this.#stop.signal })
        [Symbol.asyncIterator]();
      await this.#hello(responses);
      const views: SessionView[] = [];
      const unreadable: string[] = [];
      let chars = 0;
      let pages = 0;
      for (let last = false; !last; ) {
        timer.refresh();
        const page = await next(responses);
        if (page.body.case !== 'snapshot') throw new ProtocolError('the message is not a snapshot');
        last = page.body.value.last;
        for (const session of page.body.value.sessions) {
          const view = viewFromWire(session);
          chars += JSON.stringify(view).length;
          views.push(view);
        }
        for (const id of page.body.value.unreadable) {
          chars += id.length;
          unreadable.push(id);
        }
        if (views.length + unreadable.length > limits.link_sessions_max)
          throw new ProtocolError('too many sessions');
        if (chars > limits.link_snapshot_chars_max || ++pages > limits.link_sessions_max)
          throw new ProtocolError('the snapshot has too many pages');
      }
      for (const { session_id, facts, phase } of views) {
        this.#facts.set(session_id, facts.at(-1)?.number ?? 0);
        if (phase === 'ended') this.pulls.ended(session_id);
      }
      const pulled = createClient(NodeService, this.#options.bytes.transport).pull(
        this.pulls.requests(this.#stop.signal),
        { signal: this.#stop.signal, headers: this.headers },
      );
      void this.pulls.take(pulled).then(
        () => this.end(),
        (error) => this.end(error),
      );
      return { views, unreadable, follow: (sink) => void this.#follow(responses, sink) };
    } catch (error) {
      // The error that ended the link is more specific than the abort that followed.
      this.end(error as Error);
      const reason = await this.ended;
      if (reason instanceof ProtocolError) this.#logProtocolError(reason);
      throw toProblem(reason);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Acknowledges only if that lets the node do something: free space, or drop a fact. */
  committed(session_id: string, offsets: StreamSizes, fact: number): void {
    const last = this.#acknowledged.get(session_id);
    const hasNewBytes = (stream: StreamName) =>
      offsets[stream] - (last?.offsets[stream] ?? 0) >= limits.link_committed_bytes;
    if (last?.fact === fact && !streamNames.some(hasNewBytes)) return;
    this.#acknowledged.set(session_id, { offsets, fact });
    this.#committed.set(session_id, { offsets, fact });
    this.#wake.notify();
  }

  /** Stops reading and acknowledging the session. */
  forget(session_id: string): void {
    this.#acknowledged.delete(session_id);
    this.pulls.forget(session_id);
  }

  async #hello(responses: AsyncIterator<AttachResponse>): Promise<void> {
    const { body } = await next(responses);
    if (body.case !== 'hello') throw new ProtocolError('the first message is not a hello');
    const hello: NodeHello = body.value;
    const fields = [hello.instanceId, hello.diskId, hello.speaks?.version ?? ''];
    if (fields.some((field) => field.length > limits.link_word_chars_max))
      throw new ProtocolError('the hello is too long');
    const { node_id } = this;
    const wrong = versionMismatch(hello.speaks, { us: 'this plane', them: `node ${node_id}` });
    if (wrong) throw new Problem('bad_gateway', 'version_skew', wrong);
    this.#identity = {
      node_id: hello.nodeId,
      instance_id: hello.instanceId,
      disk_id: hello.diskId,
      version: hello.speaks?.version ?? '',
    };
    await this.#options.accept(this.#identity);
  }

  async #follow(responses: AsyncIterator<AttachResponse>, sink: NodeSink): Promise<void> {
    this.#sink = sink;
    try {
      for (;;) {
        const { body } = await next(responses);
        if (body.case === 'wakes') for (const id of body.value.sessionIds) sink.wake(id);
        else if (body.case === 'fact') sink.fact(this.#requireConsecutive(factFromWire(body.value)));
        else if (body.case === 'upcall') this.#call(body.value);
      }
    } catch (error) {
      if (error instanceof ProtocolError) this.#logProtocolError(error);
      this.end(error as Error);
    }
  }

  #requireConsecutive(fact: SessionFact): SessionFact {
    const { session_id, number } = fact;
    const expected = (this.#facts.get(session_id) ?? 0) + 1;
    if (number !== expected)
      throw new ProtocolError(`fact ${number} of ${session_id} instead of ${expected}`);
    if (fact.body.kind === 'ended') {
      this.#facts.delete(session_id);
      this.pulls.ended(session_id);
    } else this.#facts.set(session_id, number);
    if (this.#facts.size > limits.link_sessions_max) throw new ProtocolError('too many sessions');
    return fact;
  }

  #logProtocolError(err: ProtocolError): void {
    this.#options.log.warn({ node_id: this.node_id, err }, 'node breaks the protocol');
  }

  #call({ id, method, params, token }: Upcall): void {
    if (++this.#upcalls > limits.link_upcalls_max) throw new ProtocolError('too many calls at once');
    const reply = async () => {
      try {
        const result = await this.#options.upcall({ method, params: paramsFromWire(params), token });
        const value = JSON.stringify(result ?? null);
        if (Buffer.byteLength(value) > limits.link_message_bytes_max - KIB)
          throw problems.actorResultTooLarge();
        return { id, outcome: { case: 'result', value } } as const;
      } catch (error) {
        const value = refusalToWire(error instanceof Problem ? error : problems.upcallFailed());
        return { id, outcome: { case: 'refusal', value } } as const;
      }
    };
    void reply().then((value) => {
      this.#replies.push(create(AttachRequestSchema, { body: { case: 'reply', value } }));
      this.#wake.notify();
    });
  }

  /**
   * All messages to the node. Acknowledgements are collected briefly, and the newest one of a session replaces
   * earlier ones.
   */
  async *#requests(): AsyncGenerator<AttachRequest> {
    const { signal } = this.#stop;
    const { position, node_id } = this;
    const hello = {
      planeId: position.plane_id,
      incarnation: BigInt(position.incarnation),
      epoch: BigInt(position.epoch),
      nodeId: node_id,
      speaks: versionInfo(),
    };
    yield create(AttachRequestSchema, { body: { case: 'hello', value: hello } });
    while (!signal.aborted) {
      for (let reply = this.#replies.shift(); reply; reply = this.#replies.shift()) {
        yield reply;
        // Freed only now, so that a peer that does not read its replies cannot send calls without limit.
        this.#upcalls--;
      }
      for (const [sessionId, { offsets, fact }] of this.#committed) {
        this.#committed.delete(sessionId);
        const { stdout, stderr } = offsets;
        const value = { sessionId, stdout: BigInt(stdout), stderr: BigInt(stderr), fact: BigInt(fact) };
        yield create(AttachRequestSchema, { body: { case: 'committed', value } });
      }
      await this.#wake.wait(undefined, signal);
      if (this.#replies.length === 0) await sleep(limits.link_committed_ms, signal);
    }
  }
}

async function next(responses: AsyncIterator<AttachResponse>): Promise<AttachResponse> {
  const { done, value } = await responses.next();
  if (done) throw problems.nodeUnreachable();
  return value;
}
