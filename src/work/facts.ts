/**
 * Facts: events between features. A feature records a fact in the transaction that makes it true. Each consumer has a
 * cursor, and handles a fact in a transaction that also moves the cursor. So each fact is handled exactly once.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Store, Tx } from '../store/store.ts';
import { limits } from './limits.ts';
import { insertFact, nextFact, passFact, putConsumers } from './queries/facts.ts';

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

export class Facts {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #wakes = new Set<Wake>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  record<K extends FactKind>(tx: Tx, kind: K, ref: string, payload: FactPayloads[K]): void {
    insertFact(tx, { ts: this.#clock.now(), kind, ref, payload: JSON.stringify(payload) });
    tx.afterCommit(() => {
      for (const wake of this.#wakes) wake.notify();
    });
  }

  /**
   * Starts the consumers. Their names permanently identify their cursors, so they must not change. A fact is deleted once
   * all consumers have passed it, so all of them must be registered here.
   */
  async open(consumers: Record<string, FactHandlers>): Promise<void> {
    await this.#store.write((tx) => putConsumers(tx, Object.keys(consumers)));
    for (const [name, handlers] of Object.entries(consumers)) {
      const wake = new Wake();
      this.#wakes.add(wake);
      this.#running.push(this.#run(name, handlers, wake));
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #run(name: string, handlers: FactHandlers, wake: Wake): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const more = await this.#store.write((tx) => this.#step(tx, name, handlers));
        if (!more) await wake.wait(undefined, signal);
      } catch (error) {
        this.#log.error({ err: error, consumer: name }, 'cannot handle a fact; trying again');
        await wake.wait(limits.fact_retry_ms, signal);
      }
    }
  }

  /** Handles one fact. Returns false if there is none. */
  #step(tx: Tx, name: string, handlers: FactHandlers): boolean {
    const row = nextFact(tx, name);
    if (!row) return false;
    const handler = handlers[row.kind as FactKind] as ((tx: Tx, fact: Fact) => void) | undefined;
    handler?.(tx, {
      id: row.id,
      ts_ms: row.ts,
      kind: row.kind as FactKind,
      ref: row.ref,
      payload: JSON.parse(row.payload),
    });
    passFact(tx, name, row.id);
    return true;
  }
}
