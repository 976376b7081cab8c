/**
 * Facts: events between features. A feature records a fact in the transaction that makes it true. Each consumer has a
 * cursor, and handles a fact in a transaction that also moves the cursor. So each fact is handled exactly once. A
 * consumer that fails does not delay the others.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Store, Tx } from '../store/store.ts';
import { limits } from './limits.ts';
import {
  type FactRow,
  factsAfter,
  getCursors,
  insertFact,
  passFacts,
  putConsumers,
} from './queries/facts.ts';

/** Every kind of fact with its payload. */
export interface FactPayloads {
  /** For agents that speak ACP, and for members of teams. */
  session_started: { agent_id: string; session_id: string };
  /** The node rejected a start before doing anything, so the session was removed. */
  session_refused: { agent_id: string; session_id: string; error: string };
  session_ended: {
    agent_id: string;
    session_id: string;
    status: string;
    started_at_ms: number | null;
    /** The node's message for a failure. */
    message?: string | null;
  };
  /** Communication with an agent failed; its process keeps running. */
  acp_failed: { agent_id: string; session_id: string; error: string };
  /** An agent of a team accepts no prompts until someone acts. `reason` says what is needed, for people. */
  acp_waits: { agent_id: string; session_id: string; reason: string };
  /** For an agent of a team: a prompt is on its way to its stdin. */
  turn_began: { agent_id: string; session_id: string; prompt_id: string };
  /** For an agent of a team. `stop_reason` is null if the agent answered with an error. */
  turn_ended: { agent_id: string; session_id: string; prompt_id: string; stop_reason: string | null };
  /** A user removed a queued prompt of a team's agent. */
  prompt_removed: { agent_id: string; prompt_id: string };
  /** An agent of a team now accepts prompts. */
  session_ready: { agent_id: string; session_id: string };
  review_opened: { review_id: string; agent_id: string };
  /** The recipients of a review changed. */
  review_routed: { review_id: string };
  /** The review no longer needs an answer. */
  review_closed: { review_id: string };
  elicitation_opened: { elicitation_id: string };
  /** The elicitation no longer needs an answer. */
  elicitation_closed: { elicitation_id: string };
  /** A run started, resumed or ended. */
  run_changed: { run_id: string; status: string; attempt: number };
  /** Other steps of a run are complete than before, or it has other steps. */
  run_progressed: { run_id: string };
  /** A step waits for an answer. */
  step_waits: { run_id: string; step_key: string; since_ms: number };
  /** The step no longer waits. `answered_by`: the display name; null if the wait ended without an answer. */
  step_answered: { run_id: string; step_key: string; answered_by: string | null };
  /** A run waits for a person although none of its steps does. */
  run_waits: { run_id: string; since_ms: number };
  /** The run no longer waits so. `answered_by`: as for a step; also null if one of its steps waits now. */
  run_answered: { run_id: string; answered_by: string | null };
  /** The agent's session needs a sign-in. */
  sign_in_required: { agent_id: string; since_ms: number };
  /** The agent's session no longer needs a sign-in. */
  sign_in_over: { agent_id: string };
  /** There is mail for a member of a run whose agent speaks ACP. */
  mail_sent: { mail_num: number; run_num: number; to_actor_id: string };
}
export type FactKind = keyof FactPayloads;

export interface Fact<K extends FactKind = FactKind> {
  id: number;
  ts_ms: number;
  kind: K;
  /** Id of the record that the fact is about. */
  ref: string;
  payload: FactPayloads[K];
}

export type FactHandlers = { [K in FactKind]?: (tx: Tx, fact: Fact<K>) => void };

interface Consumer {
  name: string;
  handlers: FactHandlers;
  /** After a failure: when it handles facts again, in ms of `performance.now()`. */
  retry_at_ms: number;
}

export class Facts {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The consumer whose handler is running. */
  #handling: Consumer | null = null;

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Records a fact in the caller's transaction. Consumers handle it after the commit. */
  record<K extends FactKind>(tx: Tx, kind: K, ref: string, payload: FactPayloads[K]): void {
    insertFact(tx, { ts: this.#clock.now(), kind, ref, payload: JSON.stringify(payload) });
    tx.afterCommit(() => this.#wake.notify());
  }

  /**
   * Starts the consumers. Their names permanently identify their cursors, so they must not change. A fact is deleted
   * once all consumers have passed it, so all of them must be registered here.
   */
  async open(handlers: Record<string, FactHandlers>): Promise<void> {
    await this.#store.write((tx) => putConsumers(tx, Object.keys(handlers)));
    const consumers = Object.entries(handlers).map(
      ([name, own]): Consumer => ({ name, handlers: own, retry_at_ms: 0 }),
    );
    this.#running = this.#run(consumers);
  }

  /** Resolves after the transaction in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(consumers: readonly Consumer[]): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const now_ms = performance.now();
      const ready = consumers.filter(({ retry_at_ms }) => retry_at_ms <= now_ms);
      try {
        const more = ready.length > 0 && (await this.#store.write((tx) => this.#step(tx, ready)));
        const all_ready = ready.length === consumers.length;
        if (!more) await this.#wake.wait(all_ready ? undefined : limits.fact_retry_ms, signal);
      } catch (error) {
        const { name } = this.#handling ?? {};
        this.#log.error({ err: error, consumer: name }, 'cannot handle a fact; trying again');
        if (this.#handling) this.#handling.retry_at_ms = performance.now() + limits.fact_retry_ms;
        else await this.#wake.wait(limits.fact_retry_ms, signal);
      }
    }
  }

  /**
   * Handles the next facts for all of these consumers in one transaction, because a transaction for each costs several
   * times as much as the handlers. Returns false if there are no more facts. If a handler throws, the caller repeats
   * the transaction without that consumer, which retries later.
   */
  #step(tx: Tx, consumers: readonly Consumer[]): boolean {
    this.#handling = null;
    const cursors = getCursors(tx);
    const after = Math.min(...consumers.map(({ name }) => cursors.get(name)!));
    const rows = factsAfter(tx, after);
    for (const row of rows) {
      const fact = toFact(row);
      for (const consumer of consumers) {
        if (cursors.get(consumer.name)! >= row.id) continue;
        this.#handling = consumer;
        const handler = consumer.handlers[fact.kind] as ((tx: Tx, fact: Fact) => void) | undefined;
        handler?.(tx, fact);
      }
    }
    this.#handling = null;
    const last = rows.at(-1);
    if (last) {
      const names = consumers.map(({ name }) => name);
      passFacts(tx, names, last.id);
    }
    return rows.length === limits.facts_per_transaction;
  }
}

function toFact({ id, ts, kind, ref, payload }: FactRow): Fact {
  return { id, ts_ms: ts, kind: kind as FactKind, ref, payload: JSON.parse(payload) };
}
