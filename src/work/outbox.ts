/**
 * The outbox: work that must be done on a node, with a node's results, or at a push service. A service enqueues an
 * intent in the transaction that decides on it. The dispatcher carries out intents in order within a lane, in parallel
 * across lanes, and again after a crash, so handlers must be idempotent. It repeats an intent after a failure that may pass
 * (`isTemporary`), and after an unexpected error, with growing pauses; later intents of the lane wait. Any other error is the
 * outcome of the intent. A stored intent that cannot be parsed is an unexpected error.
 *
 * An intent without a handler was stored by a newer program. It waits for that program, and so do the later intents of its
 * lane, because they may depend on it; other lanes are not affected.
 */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { WorktreeRequest } from '../core/node.ts';
import { isTemporary, problems } from '../core/problem.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { type Failure, type FailureOptions, nextFailure } from './failures.ts';
import { limits } from './limits.ts';
import {
  countIntentsExcept,
  deleteIntent,
  deleteIntents,
  hasIntent,
  type IntentRow,
  insertIntent,
  listIntents,
} from './queries/outbox.ts';

export interface IntentPayloads {
  /** See `Lifecycle.enqueueStart`. */
  start: { waits?: boolean; logs?: boolean };
  stop: { grace_ms: number };
  /** `data` is base64. */
  input: { offset: number; data: string; eof: boolean };
  /** Allows the node to delete the session's directory, because everything in it is committed. */
  forget: Record<string, never>;
  /** Ends, on its node, a session that was given up while the node was unreachable. */
  discard: { agent_id: string };
  /** Deletes a node's data of a deleted user or team. The lane consists of the owner and the node. */
  forget_owner: { owner_id: string };
  /** Removes a worktree if it was made for an agent that was not inserted. The lane is the agent's. */
  discard_worktree: WorktreeRequest;
  /**
   * Carries out a request for an agent whose node did not answer. The lane is the agent's, and its row contains the
   * request.
   */
  pursue: Record<string, never>;
  /** Gives an assignment to its agent. The lane is the agent's. */
  prepare: { assignment_num: number };
  /** Reads the output that a session left for an assignment. */
  collect: { assignment_num: number };
  /** Reads an agent's last message of a turn, which is the output of an assignment. */
  collect_message: { assignment_num: number; prompt_id: string };
  /** Reads an agent's last message of a turn that failed. It explains `error_text`. */
  collect_failure: { assignment_num: number; prompt_id: string; error_text: string };
  /** Sends a device its unsent messages. The lane is the subscription's. */
  push: { message_num: number };
}
export type IntentKind = keyof IntentPayloads;

/** The kinds that earlier versions stored, with the current names. */
const renamed_kinds: ReadonlyMap<string, IntentKind> = new Map([['hear', 'collect_message']]);

/**
 * Fields of payloads, with the names under which they are stored. An earlier version that opens the database reads only
 * these: without the field, it drops the intent (SQLite) or repeats it in vain (PostgreSQL).
 */
const stored_names: ReadonlyMap<string, string> = new Map([['assignment_num', 'attempt_num']]);
const current_names: ReadonlyMap<string, string> = new Map(
  [...stored_names].map(([now, stored]) => [stored, now]),
);

export interface Intent<K extends IntentKind = IntentKind> {
  id: number;
  node_id: string;
  /** A session's id, or for some kinds the id of an agent, of a subscription, or of an owner and a node. */
  lane: string;
  kind: K;
  payload: IntentPayloads[K];
  /** The intent was withdrawn: it is not carried out, or not retried if it is already in progress. */
  withdrawn?: boolean;
  /** See `Outbox.complete`. */
  completed?: boolean;
  /** The last failure, if there was one since the service started. */
  failure?: Failure;
  /** Why the stored payload cannot be parsed. Such an intent is never carried out. */
  unreadable?: Error;
}

/** Handlers carry out intents. Waiters receive the results, but not after a crash. */
export type IntentHandlers = { [K in IntentKind]: (intent: Intent<K>) => Promise<IntentAnswers[K]> };

interface IntentAnswers {
  start: unknown;
  stop: unknown;
  /** Length of the session's stdin after the write. */
  input: number;
  forget: unknown;
  discard: unknown;
  forget_owner: unknown;
  discard_worktree: unknown;
  pursue: unknown;
  prepare: unknown;
  collect: unknown;
  collect_message: unknown;
  collect_failure: unknown;
  push: unknown;
}

const failure_options: FailureOptions = {
  first_pause_ms: limits.outbox_retry_ms,
  pause_ms_max: limits.outbox_retry_ms_max,
  text: 'an intent failed; trying again',
};

interface Waiter {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Lane {
  id: string;
  queue: Intent[];
  running: boolean;
  retry: NodeJS.Timeout | null;
  /** Its first intent is of an unknown kind. */
  blocked: boolean;
}

export class Outbox {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #lanes = new Map<string, Lane>();
  readonly #waiters = new Map<number, Waiter[]>();
  /**
   * The ids of intents that `open` found only in the database. Some may be this process's: a commit is visible to reads before
   * it is reported. Ids are never reused.
   */
  readonly #only_listed = new Set<number>();
  #handlers: IntentHandlers | null = null;
  #closed = false;

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Number of intents that are not carried out yet. */
  get size(): number {
    let intents = 0;
    for (const { queue } of this.#lanes.values()) intents += queue.length;
    return intents;
  }

  /** Starts dispatching, beginning with the stored intents: those that an earlier process left, and those enqueued so far. */
  async open(handlers: IntentHandlers): Promise<void> {
    const rows = await this.#store.read(listIntents);
    const enqueued = new Map<number, Intent>();
    for (const { queue } of this.#lanes.values()) for (const intent of queue) enqueued.set(intent.id, intent);
    this.#lanes.clear();
    this.#handlers = handlers;
    for (const row of rows) {
      const intent = enqueued.get(row.id);
      if (intent) enqueued.delete(row.id);
      else this.#only_listed.add(row.id);
      this.#push(intent ?? toIntent(row));
    }
    // What was committed after the rows were read, or withdrawn before.
    for (const intent of enqueued.values()) this.#push(intent);
  }

  /** Returns the intent's id. Once the transaction has committed, pass it to `outcome` to wait for the result. */
  async enqueue<K extends IntentKind>(
    tx: Tx,
    node_id: string,
    lane: string,
    kind: K,
    payload: IntentPayloads[K],
  ): Promise<number> {
    const id = await insertIntent(tx, {
      node_id,
      lane,
      kind,
      payload: JSON.stringify(renamed(payload, stored_names)),
      created_at: this.#clock.now(),
    });
    tx.afterCommit(() => {
      if (!this.#only_listed.delete(id)) this.#push({ id, node_id, lane, kind, payload });
    });
    return id;
  }

  /**
   * Deletes an intent in its handler's last transaction. Otherwise, the outbox deletes it in a transaction of its own, for
   * which the next step of a chain waits.
   */
  async complete(tx: Tx, intent: Intent): Promise<void> {
    await deleteIntent(tx, intent.id);
    tx.afterCommit(() => {
      intent.completed = true;
    });
  }

  /** The number of intents that wait for a program that knows their kind. */
  countUnknown(reader: Reader): Promise<number> {
    return countIntentsExcept(reader, [...Object.keys(this.#handlers ?? {}), ...renamed_kinds.keys()]);
  }

  /** Whether an intent of this kind is pending or in progress in a lane. */
  isPending(reader: Reader, lane: string, kind: IntentKind): Promise<boolean> {
    return hasIntent(reader, lane, kind);
  }

  /**
   * Withdraws the intents of these kinds in a lane, and rejects their waiters. An intent that is in progress may still
   * complete once. Idempotent.
   */
  async withdraw(tx: Tx, lane: string, kinds: readonly IntentKind[]): Promise<void> {
    const ids = await deleteIntents(tx, lane, kinds);
    tx.afterCommit(() => {
      // Transactions may overlap: one that this one did not see may have enqueued another intent of these kinds.
      const found = this.#lanes.get(lane);
      const withdrawn = found?.queue.filter(({ id }) => ids.includes(id)) ?? [];
      for (const intent of withdrawn) intent.withdrawn = true;
      if (found?.queue[0]?.withdrawn) this.#retryNow(found);
      // The same group commit may contain an intent whose waiter registers only after this.
      setImmediate(() => {
        for (const { id } of withdrawn)
          this.#settle(id, (waiter) => waiter.reject(problems.nodeUnreachable()));
      });
    });
  }

  /**
   * Resolves to the handler's result; rejects with its error, even if it will be retried. Call it right after the
   * commit.
   */
  outcome(id: number): Promise<unknown> {
    if (this.#closed) return Promise.reject(problems.shutdownInterrupted());
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(id) ?? [];
      waiters.push({ resolve, reject });
      this.#waiters.set(id, waiters);
    });
  }

  /** Immediately retries the pending intents of a node that is back. */
  retryNow(node_id: string): void {
    for (const lane of this.#lanes.values()) {
      if (lane.queue[0]?.node_id === node_id) this.#retryNow(lane);
    }
  }

  /** Stops dispatching and rejects all waiters with `shutdown_interrupted`. The intents stay for the next process. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values()) if (lane.retry) clearTimeout(lane.retry);
    for (const waiters of this.#waiters.values()) {
      for (const waiter of waiters) waiter.reject(problems.shutdownInterrupted());
    }
    this.#waiters.clear();
  }

  #push(intent: Intent): void {
    let lane = this.#lanes.get(intent.lane);
    if (!lane) {
      lane = { id: intent.lane, queue: [], running: false, retry: null, blocked: false };
      this.#lanes.set(lane.id, lane);
    }
    lane.queue.push(intent);
    // A new intent in the lane also triggers a retry of the first one.
    if (lane.retry) this.#retryNow(lane);
    else void this.#drain(lane);
  }

  #retryNow(lane: Lane): void {
    if (!lane.retry) return;
    clearTimeout(lane.retry);
    lane.retry = null;
    void this.#drain(lane);
  }

  async #drain(lane: Lane): Promise<void> {
    if (lane.running || lane.retry || !this.#handlers) return;
    lane.running = true;
    // Lets the caller's commit resolve first, so that the caller can wait for the outcome.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      for (let intent = lane.queue[0]; intent && !this.#closed; intent = lane.queue[0]) {
        if (!intent.withdrawn && !this.#isKnown(intent)) return this.#block(lane, intent);
        if (!intent.withdrawn && !(await this.#carryOut(intent, lane))) return;
        lane.queue.shift();
      }
    } finally {
      lane.running = false;
      if (lane.queue.length === 0) this.#lanes.delete(lane.id);
    }
  }

  #isKnown({ kind }: Intent): boolean {
    return Object.hasOwn(this.#handlers!, kind);
  }

  /** Leaves the lane as it is until a newer program starts, and rejects everyone who waits for its intents. */
  #block(lane: Lane, { kind, node_id }: Intent): void {
    if (!lane.blocked) {
      const message =
        'an intent is of a kind that this version does not know; upgrade svc to continue its lane';
      this.#log.warn({ intent: kind, lane: lane.id, node_id }, message);
    }
    lane.blocked = true;
    for (const { id } of lane.queue) this.#settle(id, (waiter) => waiter.reject(problems.newerIntent()));
  }

  /** Returns true if the intent is finished, and false if it waits for a retry. */
  async #carryOut(intent: Intent, lane: Lane): Promise<boolean> {
    let reply: (waiter: Waiter) => void;
    try {
      if (intent.unreadable) throw intent.unreadable;
      const handler = this.#handlers![intent.kind] as (intent: Intent) => Promise<unknown>;
      const answer = await handler(intent);
      reply = (waiter) => waiter.resolve(answer);
    } catch (error) {
      if (this.#closed) return false;
      reply = (waiter) => waiter.reject(error);
      if (!intent.withdrawn && !intent.completed && isTemporary(error)) {
        this.#scheduleRetry(intent, lane, error);
        this.#settle(intent.id, reply);
        return false;
      }
    }
    try {
      if (!intent.completed) await this.#delete(intent.id);
    } catch (error) {
      // The row could not be deleted, perhaps for lack of space. Repeating the intent changes nothing.
      if (!this.#closed) this.#scheduleRetry(intent, lane, error);
    }
    this.#settle(intent.id, reply);
    return lane.retry === null && !this.#closed;
  }

  #scheduleRetry(intent: Intent, lane: Lane, error: unknown): void {
    const { kind, node_id } = intent;
    const about = { intent: kind, lane: lane.id, node_id };
    intent.failure = nextFailure(intent.failure, error, failure_options, this.#log, about);
    lane.retry = setTimeout(() => {
      lane.retry = null;
      void this.#drain(lane);
    }, intent.failure.pause_ms);
  }

  async #delete(id: number): Promise<void> {
    await this.#store.write((tx) => deleteIntent(tx, id));
  }

  #settle(id: number, reply: (waiter: Waiter) => void): void {
    for (const waiter of this.#waiters.get(id) ?? []) reply(waiter);
    this.#waiters.delete(id);
  }
}

function toIntent({ id, node_id, lane, kind, payload }: IntentRow): Intent {
  const intent = { id, node_id, lane, kind: renamed_kinds.get(kind) ?? (kind as IntentKind), payload: {} };
  try {
    return { ...intent, payload: renamed(JSON.parse(payload), current_names) };
  } catch (error) {
    return { ...intent, unreadable: error as Error };
  }
}

/** A copy in which the fields have other names. Throws a TypeError for null. */
function renamed<T extends object>(fields: T, names: ReadonlyMap<string, string>): T {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [names.get(name) ?? name, value]),
  ) as T;
}
