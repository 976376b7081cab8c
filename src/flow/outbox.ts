/**
 * The outbox: what must happen on a node, with what came from one, or at a push service. A service enqueues an intent in the transaction that decides it; the
 * dispatcher carries it out in order per session, in parallel across sessions, and again after a crash, so handlers
 * are idempotent. A node that cannot be reached is tried again; any other failure is the handler's own to settle.
 */
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { isOutOfReach, Problem, problems } from '../domain/problem.ts';
import type { Reader, Store, Tx } from '../store/store.ts';

export interface IntentPayloads {
  start: Record<string, never>;
  stop: { grace_ms: number };
  /** `data` is base64. */
  input: { offset: number; data: string; eof: boolean };
  /** The session's directory may go: everything of it is committed. */
  forget: Record<string, never>;
  /** A session that was given up while its node was away is to be ended there. */
  discard: { agent_id: string };
  /** What was asked of an agent whose node did not answer; its lane is the agent's, and the agent's row says what. */
  pursue: Record<string, never>;
  /** An attempt of a step is to be given to its agent; its lane is the agent's. */
  prepare: { attempt_num: number };
  /** What a session left for the attempt that it was there for is to be read. */
  collect: { attempt_num: number };
  /** What an agent said last in a turn is to be read. */
  hear: { attempt_num: number; prompt_id: string };
  /** A device is to be sent what it was not sent yet; its lane is the subscription's. */
  push: { message_num: number };
}
export type IntentKind = keyof IntentPayloads;

export interface Intent<K extends IntentKind = IntentKind> {
  id: number;
  node_id: string;
  session_id: string;
  kind: K;
  payload: IntentPayloads[K];
  /** Taken back: not carried out any more, or not again where that is under way. */
  withdrawn?: boolean;
}

/** What carrying out an intent answered; waiters get it, a crash loses it. */
export type IntentHandlers = { [K in IntentKind]: (intent: Intent<K>) => Promise<IntentAnswers[K]> };

interface IntentAnswers {
  start: unknown;
  stop: unknown;
  /** How long the session's stdin is then. */
  input: number;
  forget: unknown;
  discard: unknown;
  pursue: unknown;
  prepare: unknown;
  collect: unknown;
  hear: unknown;
  push: unknown;
}

interface Waiter {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Lane {
  queue: Intent[];
  running: boolean;
  retry: NodeJS.Timeout | null;
  retry_ms: number;
}

export class Outbox {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #lanes = new Map<string, Lane>();
  readonly #waiters = new Map<number, Waiter[]>();
  #handlers: IntentHandlers | null = null;
  #closed = false;

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Starts dispatching, beginning with what an earlier process left undone. */
  async open(handlers: IntentHandlers): Promise<void> {
    this.#handlers = handlers;
    const rows = await this.#store.read((reader) =>
      reader.all(reader.sql.selectFrom('outbox').selectAll().orderBy('id')),
    );
    for (const row of rows) {
      this.#push({
        id: row.id,
        node_id: row.node_id,
        session_id: row.session_id,
        kind: row.kind as IntentKind,
        payload: JSON.parse(row.payload),
      });
    }
  }

  /** Answers the intent's id; `outcome` waits for it once the transaction has committed. */
  enqueue<K extends IntentKind>(
    tx: Tx,
    node_id: string,
    session_id: string,
    kind: K,
    payload: IntentPayloads[K],
  ): number {
    const row = tx.get(
      tx.sql
        .insertInto('outbox')
        .values({
          node_id,
          session_id,
          kind,
          payload: JSON.stringify(payload),
          created_at: this.#clock.now(),
          attempts: 0,
          next_at: 0,
        })
        .returning('id'),
    );
    const id = row!.id;
    tx.afterCommit(() => this.#push({ id, node_id, session_id, kind, payload }));
    return id;
  }

  /** Whether an intent of this kind is still to be carried out in a lane, or is being. */
  waits(reader: Reader, lane: string, kind: IntentKind): boolean {
    const intents = reader.sql.selectFrom('outbox').select('id').where('session_id', '=', lane);
    return reader.get(intents.where('kind', '=', kind)) !== undefined;
  }

  /**
   * Takes the intents of these kinds in a lane back, and turns away who waits for them. What is under way already
   * may still happen once. Idempotent.
   */
  withdraw(tx: Tx, lane: string, kinds: readonly IntentKind[]): void {
    tx.run(tx.sql.deleteFrom('outbox').where('session_id', '=', lane).where('kind', 'in', kinds));
    tx.afterCommit(() => {
      for (const intent of this.#lanes.get(lane)?.queue ?? []) {
        if (!kinds.includes(intent.kind)) continue;
        intent.withdrawn = true;
        this.#settle(intent.id, (waiter) => waiter.reject(problems.nodeUnreachable()));
      }
    });
  }

  /** What the handler answered; rejects with its error, also with one that will be tried again. Call it right after the commit. */
  outcome(id: number): Promise<unknown> {
    if (this.#closed) return Promise.reject(problems.draining());
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(id) ?? [];
      waiters.push({ resolve, reject });
      this.#waiters.set(id, waiters);
    });
  }

  /** A node is back: what waits for it goes on now. */
  retryNow(node_id: string): void {
    for (const [session_id, lane] of this.#lanes) {
      if (lane.queue[0]?.node_id === node_id) this.#hurry(session_id, lane);
    }
  }

  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values()) if (lane.retry) clearTimeout(lane.retry);
    for (const waiters of this.#waiters.values()) {
      for (const waiter of waiters) waiter.reject(problems.draining());
    }
    this.#waiters.clear();
  }

  #push(intent: Intent): void {
    let lane = this.#lanes.get(intent.session_id);
    if (!lane) {
      lane = { queue: [], running: false, retry: null, retry_ms: 0 };
      this.#lanes.set(intent.session_id, lane);
    }
    lane.queue.push(intent);
    // Whoever asks for more now need not wait for the next try of what is in front.
    if (lane.retry) this.#hurry(intent.session_id, lane);
    else void this.#drain(intent.session_id, lane);
  }

  #hurry(session_id: string, lane: Lane): void {
    if (!lane.retry) return;
    clearTimeout(lane.retry);
    lane.retry = null;
    void this.#drain(session_id, lane);
  }

  async #drain(session_id: string, lane: Lane): Promise<void> {
    if (lane.running || lane.retry || !this.#handlers) return;
    lane.running = true;
    // The caller's commit resolves first, so that it can wait for the outcome.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      for (let intent = lane.queue[0]; intent && !this.#closed; intent = lane.queue[0]) {
        if (!intent.withdrawn && !(await this.#carryOut(intent, lane))) return;
        lane.queue.shift();
        lane.retry_ms = 0;
      }
    } finally {
      lane.running = false;
      if (lane.queue.length === 0) this.#lanes.delete(session_id);
    }
  }

  /** True when the intent is done with; false when it waits for another try. */
  async #carryOut(intent: Intent, lane: Lane): Promise<boolean> {
    let tell: (waiter: Waiter) => void;
    try {
      const handler = this.#handlers![intent.kind] as (intent: Intent) => Promise<unknown>;
      const answer = await handler(intent);
      tell = (waiter) => waiter.resolve(answer);
    } catch (error) {
      if (this.#closed) return false;
      tell = (waiter) => waiter.reject(error);
      if (!intent.withdrawn && (!(error instanceof Problem) || isOutOfReach(error))) {
        this.#tryAgain(intent, lane, error);
        this.#settle(intent.id, tell);
        return false;
      }
    }
    try {
      await this.#forget(intent.id);
    } catch (error) {
      // Not struck off, for want of space perhaps: carried out again, which changes nothing, until it is.
      if (!this.#closed) this.#tryAgain(intent, lane, error);
    }
    this.#settle(intent.id, tell);
    return lane.retry === null && !this.#closed;
  }

  #tryAgain(intent: Intent, lane: Lane, error: unknown): void {
    lane.retry_ms = Math.min(Math.max(lane.retry_ms * 2, limits.outbox_retry_ms), limits.outbox_retry_ms_max);
    this.#log.warn(
      { err: error, intent: intent.kind, session_id: intent.session_id, retry_ms: lane.retry_ms },
      'an intent failed; trying again',
    );
    lane.retry = setTimeout(() => {
      lane.retry = null;
      void this.#drain(intent.session_id, lane);
    }, lane.retry_ms);
  }

  async #forget(id: number): Promise<void> {
    await this.#store.write((tx) => tx.run(tx.sql.deleteFrom('outbox').where('id', '=', id)));
  }

  #settle(id: number, tell: (waiter: Waiter) => void): void {
    for (const waiter of this.#waiters.get(id) ?? []) tell(waiter);
    this.#waiters.delete(id);
  }
}
