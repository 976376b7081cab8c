/**
 * Time as rows: what must happen later is a row with a due time, set and removed in the transaction that decides it.
 * One scheduler runs due timers; a handler's transaction also removes the row, so each fires once, also after a restart.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { Store, Tx } from '../store/store.ts';

export interface TimerPayloads {
  agent_restart: { session_id: string };
  /** Of a session whose agent has not introduced itself. */
  acp_silent: Record<string, never>;
  /** Of a session whose turn was cancelled and goes on. */
  turn_cancel: { prompt_id: string };
  review_deadline: Record<string, never>;
  /** Of an attempt of a step, by its number. */
  step_timeout: { timeout_seconds: number };
  /** Of a message (by its id) that was named to an agent. */
  mail_unacknowledged: Record<string, never>;
  /** Of a member with mail whose step is about to begin or to end. */
  mail_look: { run_num: number; member_id: string };
  trigger: Record<string, never>;
  /** Of a review that is put before a leader. */
  review_to_humans: Record<string, never>;
  /** Of a device whose push service wants to be left alone for a while. */
  push_retry: Record<string, never>;
}
export type TimerKind = keyof TimerPayloads;

export interface Timer<K extends TimerKind = TimerKind> {
  kind: K;
  /** Id of what it is about; one timer per kind and ref. */
  ref: string;
  due_at_ms: number;
  payload: TimerPayloads[K];
}

export type TimerHandlers = { [K in TimerKind]: (tx: Tx, timer: Timer<K>) => void };

/** `setTimeout` cannot wait longer. */
const WAIT_MS_MAX = 2 ** 31 - 1;

export class Timers {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #firing: { kind: string; ref: string } | null = null;

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Sets (or moves) the one timer of this kind and ref. */
  set<K extends TimerKind>(tx: Tx, kind: K, ref: string, due_at_ms: number, payload: TimerPayloads[K]): void {
    const values = { due_at: due_at_ms, payload: JSON.stringify(payload) };
    tx.run(
      tx.sql
        .insertInto('timers')
        .values({ kind, ref, ...values })
        .onConflict((conflict) => conflict.columns(['kind', 'ref']).doUpdateSet(values)),
    );
    tx.afterCommit(() => this.#wake.notify());
  }

  clear(tx: Tx, kind: TimerKind, ref: string): void {
    tx.run(tx.sql.deleteFrom('timers').where('kind', '=', kind).where('ref', '=', ref));
  }

  open(handlers: Partial<TimerHandlers>): void {
    this.#running = this.#run(handlers);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(handlers: Partial<TimerHandlers>): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        const wait_ms = await this.#store.write((tx) => this.#step(tx, handlers));
        if (wait_ms > 0) await this.#wake.wait(Math.min(wait_ms, WAIT_MS_MAX), signal);
      } catch (error) {
        this.#log.error({ err: error, timer: this.#firing }, 'a timer failed; trying again');
        const postponed = await this.#postpone().catch(() => false);
        if (!postponed) await this.#wake.wait(limits.timer_retry_ms, signal);
      }
    }
  }

  /** A timer that fails must not hold up the others; false when it was none of them that failed. */
  async #postpone(): Promise<boolean> {
    if (!this.#firing) return false;
    const { kind, ref } = this.#firing;
    const due_at = this.#clock.now() + limits.timer_retry_ms;
    const { changes } = await this.#store.write((tx) =>
      tx.run(tx.sql.updateTable('timers').set({ due_at }).where('kind', '=', kind).where('ref', '=', ref)),
    );
    return changes > 0;
  }

  /** Fires the first due timer; answers how long to wait for the next one. */
  #step(tx: Tx, handlers: Partial<TimerHandlers>): number {
    this.#firing = null;
    const row = tx.get(tx.sql.selectFrom('timers').selectAll().orderBy('due_at').limit(1));
    if (!row) return WAIT_MS_MAX;
    const wait_ms = row.due_at - this.#clock.now();
    if (wait_ms > 0) return wait_ms;
    const kind = row.kind as TimerKind;
    this.#firing = { kind, ref: row.ref };
    this.clear(tx, kind, row.ref);
    const handler = handlers[kind] as ((tx: Tx, timer: Timer) => void) | undefined;
    handler?.(tx, { kind, ref: row.ref, due_at_ms: row.due_at, payload: JSON.parse(row.payload) });
    return 0;
  }
}
