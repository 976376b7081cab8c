/**
 * Timers as rows. Deferred work is a row with a due time, set and removed in the transaction that decides on it. One
 * scheduler fires due timers. The handler's transaction also removes the row, so each timer fires once, even after a
 * restart. Timers of unknown kinds are not even read: they stay due for a newer program that knows them.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { type Failure, type FailureOptions, nextFailure } from './failures.ts';
import { limits } from './limits.ts';
import type { FactRow } from './queries/facts.ts';
import {
  capTimers,
  countTimersExcept,
  deleteTimer,
  firstTimer,
  moveTimer,
  putTimer,
  type TimerRow,
} from './queries/timers.ts';

export interface TimerPayloads {
  agent_restart: { session_id: string };
  /** For a session whose agent has not answered `initialize`. */
  acp_silent: Record<string, never>;
  /** For a session whose cancelled turn is still running. */
  turn_cancel: { prompt_id: string | null };
  review_deadline: Record<string, never>;
  elicitation_deadline: Record<string, never>;
  /** For an attempt of a step, by its number. `waited`: it fired late once, and was postponed. */
  step_timeout: { timeout_seconds: number; waited?: boolean };
  /** For a message (by its id) that a prompt to an agent mentioned, or that the agent listed. */
  mail_unacknowledged: Record<string, never>;
  /** For a member with mail whose step is about to start or end. */
  mail_look: { run_num: number; member_id: string };
  trigger: Record<string, never>;
  /** For a review that waits for a leader. */
  review_to_humans: Record<string, never>;
  /** For a device whose push service asked for a pause. */
  push_retry: Record<string, never>;
  /**
   * For facts about a record that a consumer passed without handling them, from `fact_id` on. `facts`: those before, which an
   * earlier version kept here. See `facts.ts`.
   */
  fact_retry: { consumer: string; facts?: FactRow[] } & (
    | { about: string; fact_id: number }
    | { facts: FactRow[] }
  );
}
export type TimerKind = keyof TimerPayloads;

/** The kinds that this version knows, even if the feature that handles one was removed. */
const known_kinds = {
  agent_restart: true,
  acp_silent: true,
  turn_cancel: true,
  review_deadline: true,
  elicitation_deadline: true,
  step_timeout: true,
  mail_unacknowledged: true,
  mail_look: true,
  trigger: true,
  review_to_humans: true,
  push_retry: true,
  fact_retry: true,
} satisfies Record<TimerKind, true>;

export interface Timer<K extends TimerKind = TimerKind> {
  kind: K;
  /** Id of the record that the timer is about. There is one timer per kind and ref. */
  ref: string;
  due_at_ms: number;
  payload: TimerPayloads[K];
}

export type TimerHandlers = { [K in TimerKind]: (tx: Tx, timer: Timer<K>) => Promise<void> };

const failure_options: FailureOptions = {
  first_pause_ms: limits.timer_retry_ms,
  pause_ms_max: limits.timer_retry_ms,
  text: 'a timer failed; trying again',
};

export class Timers {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #handlers: Partial<TimerHandlers> = {};
  /** The kinds that this program knows. */
  #kinds: readonly string[] = [];
  #firing: { kind: string; ref: string; due_at: number } | null = null;
  /** The last failures of timers, by kind and ref. The empty key is for finding out what is due. */
  readonly #failures = new Map<string, Failure>();

  constructor(options: { store: Store; clock: Clock; log: Logger }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /**
   * Sets or moves the timer of this kind and ref. `due_at_ms`: Unix milliseconds. If it has passed, the timer fires
   * immediately.
   */
  async set<K extends TimerKind>(
    tx: Tx,
    kind: K,
    ref: string,
    due_at_ms: number,
    payload: TimerPayloads[K],
  ): Promise<void> {
    putTimer(tx, { kind, ref, due_at: due_at_ms, payload: JSON.stringify(payload) });
    tx.wake('timers', null);
  }

  /**
   * Brings forward the timers of a kind that are due later than `delay_ms_max` from now, its longest delay. They were set while
   * the clock was ahead. Returns their refs.
   */
  async cap(tx: Tx, kind: TimerKind, delay_ms_max: number): Promise<string[]> {
    const refs = await capTimers(tx, kind, this.#clock.now() + delay_ms_max);
    if (refs.length > 0) tx.wake('timers', null);
    return refs;
  }

  /** Removes the timer of this kind and ref. Idempotent. */
  async clear(tx: Tx, kind: TimerKind, ref: string): Promise<void> {
    await deleteTimer(tx, kind, ref);
  }

  /** Starts the scheduler. A due timer of a known kind without a handler is removed. */
  open(handlers: Partial<TimerHandlers>): void {
    this.#handlers = handlers;
    this.#kinds = [...new Set([...Object.keys(known_kinds), ...Object.keys(handlers)])];
    this.#running = this.#run();
  }

  /** The number of timers that wait for a program that knows their kind. */
  countUnknown(reader: Reader): Promise<number> {
    return countTimersExcept(reader, this.#kinds);
  }

  /** Resolves after the transaction in progress. Timers stay for the next process. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const unsubscribe = this.#store.wakes.on('timers', () => this.#wake.notify());
    while (!signal.aborted) {
      this.#firing = null;
      try {
        const wait_ms = await this.#store.read(async (reader) =>
          this.#untilDue(await firstTimer(reader, this.#kinds)),
        );
        if (wait_ms <= 0) await this.#store.write((tx) => this.#fire(tx));
        this.#failures.delete(this.#key);
        if (wait_ms > 0) await this.#wake.wait(Math.min(wait_ms, limits.timer_look_ms), signal);
      } catch (error) {
        const { pause_ms } = this.#failed(error);
        const postponed = await this.#postpone(pause_ms).catch(() => false);
        if (!postponed) await this.#wake.wait(limits.timer_retry_ms, signal);
      }
    }
    unsubscribe();
  }

  /** Identifies the timer that is firing. */
  get #key(): string {
    return this.#firing === null ? '' : `${this.#firing.kind} ${this.#firing.ref}`;
  }

  #failed(error: unknown): Failure {
    const about = { timer: this.#firing };
    const failure = nextFailure(this.#failures.get(this.#key), error, failure_options, this.#log, about);
    // Timers that are removed before they are repeated leave theirs.
    if (this.#failures.size >= limits.timer_failures_max) this.#failures.clear();
    this.#failures.set(this.#key, failure);
    return failure;
  }

  /**
   * Postpones the timer that failed, so that it does not block others. Returns false if no timer was firing, or if it was set
   * again meanwhile, perhaps by its own transaction, if the outcome of its commit was unknown.
   */
  async #postpone(pause_ms: number): Promise<boolean> {
    if (!this.#firing) return false;
    const { kind, ref, due_at } = this.#firing;
    const to = this.#clock.now() + pause_ms;
    return await this.#store.write((tx) => moveTimer(tx, kind, ref, { from: due_at, to }));
  }

  /** Time until a timer is due, in milliseconds; 0 or less if it is due. */
  #untilDue(row: TimerRow | undefined): number {
    return row ? row.due_at - this.#clock.now() : limits.timer_look_ms;
  }

  /** Fires the first timer, if it is due. */
  async #fire(tx: Tx): Promise<void> {
    const row = await firstTimer(tx, this.#kinds);
    if (!row || this.#untilDue(row) > 0) return;
    const kind = row.kind as TimerKind;
    this.#firing = { kind, ref: row.ref, due_at: row.due_at };
    await this.clear(tx, kind, row.ref);
    const handler = this.#handlers[kind] as ((tx: Tx, timer: Timer) => Promise<void>) | undefined;
    await handler?.(tx, { kind, ref: row.ref, due_at_ms: row.due_at, payload: JSON.parse(row.payload) });
  }
}
