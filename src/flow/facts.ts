/**
 * Facts: what services tell each other. A service records a fact in the transaction that made it true; whoever cares
 * consumes it with a cursor of its own, in a transaction that also moves the cursor, so exactly once.
 */
import { sql } from 'kysely';
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { Store, Tx } from '../store/store.ts';

/** Every kind of fact with its payload. */
export interface FactPayloads {
  /** Of agents that speak ACP, and of members of teams. */
  session_started: { agent_id: string; session_id: string };
  /** The node refused a start before anything happened: the session is no more. */
  session_refused: { agent_id: string; session_id: string; error: string };
  session_ended: {
    agent_id: string;
    session_id: string;
    status: string;
    started_at_ms: number | null;
    /** What its node said of a failure. */
    message?: string | null;
  };
  /** An agent cannot be talked to; it runs on. */
  acp_failed: { agent_id: string; session_id: string; error: string };
  /** An agent of a team takes no prompts until somebody does something; `reason`: what, as people read it. */
  acp_waits: { agent_id: string; session_id: string; reason: string };
  /** Of an agent of a team: a prompt is on its way to its stdin. */
  turn_began: { agent_id: string; session_id: string; prompt_id: string };
  /** Of an agent of a team. `stop_reason` is null when the agent answered with an error. */
  turn_ended: { agent_id: string; session_id: string; prompt_id: string; stop_reason: string | null };
  /** Somebody took back what an agent of a team was about to be asked. */
  prompt_removed: { agent_id: string; prompt_id: string };
  /** Of an agent of a team: it takes prompts. */
  session_ready: { agent_id: string; session_id: string };
  review_opened: { review_id: string; agent_id: string };
  /** A review was put before others than before. */
  review_routed: { review_id: string };
  /** Nobody is asked any more. */
  review_closed: { review_id: string };
  /** A run began, or somebody's word made it go on; or it is over. */
  run_changed: { run_id: string; status: string; attempt: number };
  /** There is mail for a member of a run whose agent speaks ACP. */
  mail_sent: { mail_num: number; run_num: number; to_actor_id: string };
}
export type FactKind = keyof FactPayloads;

export interface Fact<K extends FactKind = FactKind> {
  id: number;
  ts_ms: number;
  kind: K;
  /** Id of what it is about. */
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
    tx.run(
      tx.sql
        .insertInto('facts')
        .values({ ts: this.#clock.now(), kind, ref, payload: JSON.stringify(payload) }),
    );
    tx.afterCommit(() => {
      for (const wake of this.#wakes) wake.notify();
    });
  }

  /**
   * Starts the consumers. Their names keep their cursors for ever, so they never change. A fact goes when all of them
   * have passed it, so all are known before the first one looks.
   */
  async open(consumers: Record<string, FactHandlers>): Promise<void> {
    const names = Object.keys(consumers);
    await this.#store.write((tx) => {
      tx.run(tx.sql.deleteFrom('fact_cursors').where('consumer', 'not in', names));
      for (const consumer of names) {
        const row = { consumer, fact_id: 0 };
        tx.run(
          tx.sql
            .insertInto('fact_cursors')
            .values(row)
            .onConflict((conflict) => conflict.doNothing()),
        );
      }
    });
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
        this.#log.error({ err: error, consumer: name }, 'a fact could not be consumed; trying again');
        await wake.wait(limits.fact_retry_ms, signal);
      }
    }
  }

  /** Consumes one fact; false when there is none. */
  #step(tx: Tx, name: string, handlers: FactHandlers): boolean {
    const cursor =
      tx.get(tx.sql.selectFrom('fact_cursors').select('fact_id').where('consumer', '=', name))?.fact_id ?? 0;
    const row = tx.get(
      tx.sql.selectFrom('facts').selectAll().where('id', '>', cursor).orderBy('id').limit(1),
    );
    if (!row) return false;
    const handler = handlers[row.kind as FactKind] as ((tx: Tx, fact: Fact) => void) | undefined;
    handler?.(tx, {
      id: row.id,
      ts_ms: row.ts,
      kind: row.kind as FactKind,
      ref: row.ref,
      payload: JSON.parse(row.payload),
    });
    tx.run(tx.sql.updateTable('fact_cursors').set({ fact_id: row.id }).where('consumer', '=', name));
    // What every consumer has passed is of no use to anyone.
    tx.run(
      tx.sql.deleteFrom('facts').where('id', '<=', sql<number>`(SELECT min(fact_id) FROM fact_cursors)`),
    );
    return true;
  }
}
