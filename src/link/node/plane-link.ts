/**
 * The node's end of a link. Only one link exists at a time; the latest one wins. It sends the state on disk page by
 * page, and then facts and wakes as they happen. The queue for a slow plane is bounded: when it is full, the link ends,
 * and the next link reads everything from disk again.
 *
 *   hello accepted (`server.ts`) ─▶ snapshot ─▶ facts and wakes
 *                 └────────────────────┴─────────────┴──▶ ended: a later link, an error, a closed connection, or a full queue
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { Wake } from '../../base/async.ts';
import { KIB } from '../../base/limits.ts';
import type { Link, Node, NodeSink, SessionFact, SessionView } from '../../core/node.ts';
import { Problem, problemKinds, problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import {
  type AttachRequest,
  type AttachResponse,
  AttachResponseSchema,
  SessionViewSchema,
} from '../proto/node_pb.ts';
import {
  factToWire,
  fromRefusal,
  type LinkPosition,
  ProtocolError,
  safeInteger,
  viewToWire,
} from '../wire.ts';
import type { Grown } from './pulling.ts';

export class PlaneLink implements NodeSink {
  readonly position: LinkPosition;
  /** Returns whether the byte connection itself reports that a session has grown. */
  onSpoolGrew: Grown = () => false;
  readonly #node: Node;
  readonly #wake = new Wake();
  readonly #facts: SessionFact[] = [];
  readonly #wakes = new Set<string>();
  readonly #upcalls = new Map<number, { message: AttachResponse | null; settle(outcome: unknown): void }>();
  #snapshot: { views: SessionView[]; unreadable: string[] } | null = null;
  #last_upcall = 0;
  #over: Error | null = null;

  constructor(node: Node, position: LinkPosition) {
    this.#node = node;
    this.position = position;
  }

  async snapshot(views: SessionView[], _link: Link, unreadable: readonly string[]): Promise<void> {
    this.#snapshot = { views, unreadable: [...unreadable] };
  }

  fact(fact: SessionFact): void {
    if (this.#facts.push(fact) > limits.link_facts_waiting_max)
      this.end(new Error('the plane does not acknowledge facts'));
    this.#wake.notify();
  }

  wake(session_id: string): void {
    if (this.onSpoolGrew(session_id)) return;
    this.#wakes.add(session_id);
    this.#wake.notify();
  }

  /** Ends the link: `responses` throws `reason`, and open calls are rejected. Idempotent; the first reason counts. */
  end(reason: Error = problems.nodeUnreachable()): void {
    this.#over ??= reason;
    for (const { settle } of this.#upcalls.values()) settle(problems.nodeUnreachable());
    this.#upcalls.clear();
    this.#wake.notify();
  }

  /**
   * Sends an actor's call to the plane and returns its answer. `params`: JSON, sent as it is. Throws the plane's Problem,
   * `actor_call_too_large` if the call does not fit in a message, or `node_unreachable` if the link ends, too many calls
   * are waiting, or no answer arrives within `limits.actor_call_ms`. Ignores a later answer.
   */
  upcall(method: string, params: string, token: string): Promise<unknown> {
    if (this.#over || this.#upcalls.size >= limits.link_upcalls_max) {
      return Promise.reject(problems.nodeUnreachable());
    }
    if (Buffer.byteLength(method + params + token) > limits.link_message_bytes_max - KIB)
      return Promise.reject(problems.actorCallTooLarge());
    this.#last_upcall = (this.#last_upcall + 1) >>> 0;
    const id = this.#last_upcall;
    const value = { id, method, params, token };
    const message = create(AttachResponseSchema, { body: { case: 'upcall', value } });
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        // A call that was not sent never gets an answer.
        if (this.#upcalls.get(id)?.message) this.#upcalls.delete(id);
        reject(problems.nodeUnreachable());
      }, limits.actor_call_ms);
      const settle = (outcome: unknown) => {
        clearTimeout(timer);
        if (outcome instanceof Problem) reject(outcome);
        else resolve(outcome);
      };
      this.#upcalls.set(id, { message, settle });
      this.#wake.notify();
    });
  }

  /** Processes the plane's messages until they end; throws if the plane violates the protocol. */
  async take(requests: AsyncIterable<AttachRequest>): Promise<void> {
    for await (const { body } of requests) {
      if (body.case === 'committed') {
        const { sessionId, stdout, stderr, fact } = body.value;
        this.#node.committed(
          sessionId,
          { stdout: safeInteger(stdout), stderr: safeInteger(stderr) },
          safeInteger(fact),
        );
      } else if (body.case === 'reply') {
        const { id, outcome } = body.value;
        const upcall = this.#upcalls.get(id);
        if (!upcall) throw new ProtocolError('a reply to an unknown call');
        this.#upcalls.delete(id);
        if (outcome.case === 'result') upcall.settle(JSON.parse(outcome.value));
        else upcall.settle(fromRefusal(outcome.value ?? { kind: '', code: '', message: '' }, problemKinds));
      } else if (body.case === 'hello') throw new ProtocolError('a second hello');
    }
  }

  /**
   * The messages to the plane after the hello: first the snapshot, then facts and wakes, facts first. Throws the error
   * that ended the link.
   */
  async *responses(): AsyncGenerator<AttachResponse> {
    await this.#node.attach(this);
    yield* this.#pages();
    while (!this.#over) {
      for (let fact = this.#facts.shift(); fact; fact = this.#facts.shift()) {
        yield create(AttachResponseSchema, { body: { case: 'fact', value: factToWire(fact) } });
      }
      if (this.#wakes.size > 0) {
        const sessionIds = [...this.#wakes];
        this.#wakes.clear();
        yield create(AttachResponseSchema, { body: { case: 'wakes', value: { sessionIds } } });
      }
      for (const upcall of this.#upcalls.values()) {
        const { message } = upcall;
        if (!message) continue;
        upcall.message = null;
        yield message;
      }
      if (this.#facts.length === 0 && this.#wakes.size === 0) await this.#wake.wait();
    }
    throw this.#over;
  }

  *#pages(): Generator<AttachResponse> {
    const { views, unreadable } = this.#snapshot ?? { views: [], unreadable: [] };
    this.#snapshot = null;
    let from = 0;
    let last = false;
    do {
      const sessions = [];
      let bytes = 0;
      while (from < views.length && sessions.length < limits.link_page_sessions) {
        const session = create(SessionViewSchema, viewToWire(views[from]!));
        bytes += toBinary(SessionViewSchema, session).length;
        if (bytes > limits.link_page_bytes && sessions.length > 0) break;
        sessions.push(session);
        from++;
      }
      const ids = unreadable.splice(0, limits.link_page_sessions);
      last = from >= views.length && unreadable.length === 0;
      const value = { sessions, last, unreadable: ids };
      yield create(AttachResponseSchema, { body: { case: 'snapshot', value } });
    } while (!last);
  }
}
