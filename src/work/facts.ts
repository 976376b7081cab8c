/**
 * Facts: events between features. A feature records a fact in the transaction that makes it true. Each consumer has a
 * cursor for each kind of fact that it handles, and handles a fact in a transaction that also moves its cursors. So each fact
 * is handled exactly once, and a consumer handles its facts in the order of their ids. A consumer that fails does not delay
 * the others.
 *
 * A fact that a consumer repeatedly fails to handle does not delay its other facts for long: the consumer passes it, and later
 * facts with the same ref, which stay in the table. A timer keeps the id of the first one. When it fires, the consumer is called
 * with them again.
 *
 * A program reads only the kinds that it knows, and moves only its own cursors. A fact is deleted once every cursor of its kind has
 * passed it, and no timer is set for it or for an earlier one with the same ref. So an older program leaves unknown kinds and
 * consumers alone. The newer program handles their facts when it starts: before facts that were recorded later, after those
 * that the older program has handled. What no program claims is deleted after `limits.unknown_facts_kept_ms`.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { Problem } from '../core/problem.ts';
import { type SettledNumbers, waitAfter } from '../store/settled-numbers.ts';
import type { Reader, Store, Tx } from '../store/store.ts';
import { type Failure, type FailureOptions, nextFailure } from './failures.ts';
import { limits } from './limits.ts';
import {
  countFactsExcept,
  deletePassedFacts,
  deletePassedFactsOf,
  deleteUnusedCursors,
  type FactRow,
  factsAfter,
  getCursors,
  heldFacts,
  insertFact,
  passFacts,
  putCursors,
  touchCursors,
} from './queries/facts.ts';
import { findTimer, putTimer, timerRefs } from './queries/timers.ts';
import type { Timer, TimerHandlers, TimerPayloads } from './timers.ts';

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
    /** The node's message for a failure. */
    message?: string | null;
    /** The restart policy has been applied. Absent in facts of earlier releases, whose consumer applies it. */
    restart_decided?: true;
  };
  /** Communication with an agent failed; its process keeps running. */
  acp_failed: { agent_id: string; session_id: string; error: string };
  /** An agent of a team cannot start, or accepts no prompts, until something changes. `reason`: why, for people. */
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
  /** A run is waiting for a person, but not at any step. */
  run_waits: { run_id: string; since_ms: number };
  /** That wait is over. `answered_by`: as for a step; also null if one of its steps waits now. */
  run_answered: { run_id: string; answered_by: string | null };
  /** The agent's session needs a sign-in. */
  sign_in_required: { agent_id: string; since_ms: number };
  /** The agent's session no longer needs a sign-in. */
  sign_in_over: { agent_id: string };
  /** There is mail for a member of a run whose agent speaks ACP. */
  mail_sent: { mail_num: number; run_num: number; to_actor_id: string };
}
export type FactKind = keyof FactPayloads;

/** The kinds that this version knows, even if the feature that handles one was removed. */
const known_kinds = {
  session_started: true,
  session_refused: true,
  session_ended: true,
  acp_failed: true,
  acp_waits: true,
  turn_began: true,
  turn_ended: true,
  prompt_removed: true,
  session_ready: true,
  review_opened: true,
  review_routed: true,
  review_closed: true,
  elicitation_opened: true,
  elicitation_closed: true,
  run_changed: true,
  run_progressed: true,
  step_waits: true,
  step_answered: true,
  run_waits: true,
  run_answered: true,
  sign_in_required: true,
  sign_in_over: true,
  mail_sent: true,
} satisfies Record<FactKind, true>;

export interface Fact<K extends FactKind = FactKind> {
  id: number;
  ts_ms: number;
  kind: K;
  /** Id of the record that the fact is about. */
  ref: string;
  payload: FactPayloads[K];
}

export type FactHandlers = { [K in FactKind]?: (tx: Tx, fact: Fact<K>) => Promise<void> };

interface Consumer {
  name: string;
  handlers: FactHandlers;
  /** The number of its cursor, by kind. */
  cursors: ReadonlyMap<string, number>;
  /** The last failure, and the id of its fact, if no facts were handled since. */
  failure?: (Failure & { id: number }) | undefined;
  /** After a failure: when it handles facts again, in ms of `performance.now()`. */
  retry_at_ms: number;
  /** The fact that it has failed to handle too many times. */
  hopeless_id: number | null;
}

export class Facts {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #failure_options: FailureOptions;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #consumers: readonly Consumer[] = [];
  /** The kinds that this program knows. */
  #kinds: readonly string[] = [];
  /** When unknown facts were deleted last, in ms of `performance.now()`. */
  #swept_at_ms = 0;
  /** The consumer whose handler is running, and the fact that it handles. */
  #handling: { consumer: Consumer; row: FactRow } | null = null;
  /** The last failure that cannot be attributed to a consumer. */
  #failure: Failure | undefined;
  /** Consumers that handle their next fact alone, because one of them failed. */
  #suspects: Consumer[] = [];
  /** The refs of the timers for facts that were passed without being handled, also by consumers that this program does not know. */
  readonly #held = new Set<string>();
  /** Whether a transaction may have been committed without this process knowing, so that `#held` may lack refs. */
  #held_is_stale = true;

  /** `retry_ms`: delay before a failed handler runs again. */
  constructor(options: { store: Store; clock: Clock; log: Logger; retry_ms?: number }) {
    const { retry_ms = limits.fact_retry_ms } = options;
    this.#store = options.store;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#failure_options = {
      ...{ first_pause_ms: retry_ms, pause_ms_max: retry_ms },
      text: 'cannot handle a fact; trying again',
    };
  }

  /** Records a fact in the caller's transaction. Consumers handle it after the commit. */
  async record<K extends FactKind>(tx: Tx, kind: K, ref: string, payload: FactPayloads[K]): Promise<void> {
    insertFact(tx, { ts: this.#clock.now(), kind, ref, payload: JSON.stringify(payload) });
    tx.wake('facts', null);
  }

  /**
   * Starts the consumers. Their names permanently identify their cursors, so they must not change. All of them
   * must be registered here, because facts that all known consumers have passed may be deleted.
   */
  async open(handlers: Record<string, FactHandlers>): Promise<void> {
    this.#consumers = await this.#store.write((tx) => this.#register(tx, handlers));
    const handled = this.#consumers.flatMap(({ cursors }) => [...cursors.keys()]);
    this.#kinds = [...new Set([...Object.keys(known_kinds), ...handled])];
    await this.#sweep();
    this.#running = this.#run(this.#consumers);
  }

  async #refreshHeld(): Promise<void> {
    if (!this.#held_is_stale) return;
    for (const ref of await this.#store.read((reader) => timerRefs(reader, 'fact_retry')))
      this.#held.add(ref);
    this.#held_is_stale = false;
  }

  timers(): Pick<TimerHandlers, 'fact_retry'> {
    return { fact_retry: (tx, timer) => this.#handleHeld(tx, timer) };
  }

  /** Deletes what no program has claimed for `limits.unknown_facts_kept_ms`. Does something at most once an hour. */
  async sweep(): Promise<void> {
    if (performance.now() - this.#swept_at_ms >= limits.unknown_facts_sweep_ms) await this.#sweep();
  }

  /** The number of facts that wait for a program that knows their kind. */
  countUnknown(reader: Reader): Promise<number> {
    return countFactsExcept(reader, this.#kinds);
  }

  /** Resolves after the transaction in progress. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #register(tx: Tx, handlers: Record<string, FactHandlers>): Promise<Consumer[]> {
    const names = Object.entries(handlers).flatMap(([consumer, own]) =>
      Object.keys(own).map((kind) => ({ consumer, kind })),
    );
    const cursors = await putCursors(tx, names, this.#clock.now());
    return Object.entries(handlers).map(([name, own]) => ({
      name,
      handlers: own,
      cursors: new Map(
        cursors.filter(({ consumer }) => consumer === name).map(({ kind, num }) => [kind, num]),
      ),
      retry_at_ms: 0,
      hopeless_id: null,
    }));
  }

  async #sweep(): Promise<void> {
    this.#swept_at_ms = performance.now();
    const own = this.#consumers.flatMap(({ cursors }) => [...cursors.values()]);
    const now = this.#clock.now();
    const before = now - limits.unknown_facts_kept_ms;
    await this.#store.write(async (tx) => {
      await touchCursors(tx, own, now);
      await deleteUnusedCursors(tx, before);
      await deletePassedFacts(tx, before);
    });
  }

  async #run(consumers: readonly Consumer[]): Promise<void> {
    const { signal } = this.#stop;
    const unsubscribe = this.#store.wakes.on('facts', () => this.#wake.notify());
    while (!signal.aborted) {
      this.#handling = null;
      const now_ms = performance.now();
      const ready = consumers.filter(({ retry_at_ms }) => retry_at_ms <= now_ms);
      const suspect = this.#suspects.shift();
      const turn = suspect
        ? { consumers: [suspect], facts_max: 1 }
        : { consumers: ready, facts_max: limits.facts_per_transaction };
      try {
        await this.#refreshHeld();
        const settled = await this.#store.settledNumbers('facts');
        const more = ready.length > 0 && (await this.#store.write((tx) => this.#step(tx, turn, settled)));
        this.#failure = undefined;
        for (const consumer of turn.consumers) consumer.failure = undefined;
        const wait_ms = ready.length === consumers.length ? undefined : this.#failure_options.pause_ms_max;
        if (!more && !suspect) await this.#wake.wait(waitAfter(settled, wait_ms), signal);
      } catch (error) {
        this.#held_is_stale = true;
        if (this.#handling) this.#failed(this.#handling, error);
        else {
          this.#failure = nextFailure(this.#failure, error, this.#failure_options, this.#log, {});
          this.#suspects = isOfStore(error) ? [] : ready;
          await this.#wake.wait(this.#failure.pause_ms, signal);
        }
      }
    }
    unsubscribe();
  }

  #failed({ consumer, row }: { consumer: Consumer; row: FactRow }, error: unknown): void {
    const { id, kind, ref } = row;
    const before = consumer.failure?.id === id ? consumer.failure : undefined;
    const about = { consumer: consumer.name, fact: { id, kind, ref } };
    const failure = nextFailure(before, error, this.#failure_options, this.#log, about);
    // A failure of the database says nothing about the fact.
    const count = isOfStore(error) ? (before?.count ?? 0) : failure.count;
    consumer.failure = { ...failure, count, id };
    consumer.retry_at_ms = performance.now() + failure.pause_ms;
    if (count >= limits.fact_tries_max) consumer.hopeless_id = id;
  }

  /**
   * Handles the next facts for all of these consumers in one transaction, because a transaction for each costs several
   * times as much as the handlers. Returns false if there are no more facts. If a handler throws, the caller repeats
   * the transaction without that consumer, which retries later.
   */
  async #step(
    tx: Tx,
    { consumers, facts_max }: { consumers: readonly Consumer[]; facts_max: number },
    { up_to }: SettledNumbers,
  ): Promise<boolean> {
    this.#handling = null;
    const passed = await getCursors(tx);
    const own = consumers.flatMap(({ cursors }) => [...cursors.values()]);
    const after = Math.min(...own.map((cursor) => passed.get(cursor)!));
    const found = await factsAfter(tx, after, up_to, this.#kinds);
    const rows = found.slice(0, facts_max);
    const held = new Set(this.#held);
    let handled = 0;
    for (const row of rows) {
      let fact: Fact | undefined;
      for (const consumer of consumers) {
        const cursor = consumer.cursors.get(row.kind);
        if (cursor === undefined || passed.get(cursor)! >= row.id) continue;
        this.#handling = { consumer, row };
        handled++;
        const ref = timerRef(consumer.name, row.ref);
        if (row.id === consumer.hopeless_id || held.has(ref)) {
          held.add(ref);
          await this.#hold(tx, consumer, row);
        } else {
          fact ??= toFact(row);
          await handle(tx, consumer, fact);
        }
      }
    }
    // A statement that nobody waited for may have failed. Its consumer is known only if a single handler ran.
    if (handled !== 1) this.#handling = null;
    const last = rows.at(-1);
    if (last) {
      const abouts = new Set([...held].map(aboutOf));
      const ids = rows.filter(({ ref }) => !abouts.has(ref)).map(({ id }) => id);
      await passFacts(tx, own, last.id, ids);
    }
    return found.length === limits.facts_per_transaction;
  }

  /** Lets the timer handle this fact, after earlier facts about the same record for which the consumer waits. */
  async #hold(tx: Tx, consumer: Consumer, row: FactRow): Promise<void> {
    const ref = timerRef(consumer.name, row.ref);
    const timer = await findTimer(tx, 'fact_retry', ref);
    const before = timer && toHeld(JSON.parse(timer.payload));
    const fact_id = Math.min(row.id, before?.fact_id ?? row.id);
    const is_hopeless = row.id === consumer.hopeless_id;
    const due_at = timer?.due_at ?? this.#clock.now() + (is_hopeless ? limits.unexpected_pause_ms_max : 0);
    this.#setTimer(tx, { ...before, consumer: consumer.name, about: row.ref, fact_id }, due_at);
    tx.afterCommit(() => {
      this.#held.add(ref);
      if (is_hopeless) consumer.hopeless_id = null;
    });
  }

  /**
   * Handles the next facts that a consumer passed without handling them, and sets the timer again if there are more. Those that
   * only a newer program can handle wait for it.
   */
  async #handleHeld(tx: Tx, { ref, payload }: Timer<'fact_retry'>): Promise<void> {
    const { facts = [], ...held } = toHeld(payload);
    const consumer = this.#consumers.find(({ name }) => name === held.consumer);
    const kept = await heldFacts(tx, held);
    const unknown = kept.find(({ kind }) => !consumer?.cursors.has(kind));
    const next = unknown ?? kept[limits.facts_per_transaction];
    const rows = [...facts, ...(next ? kept.slice(0, kept.indexOf(next)) : kept)];
    for (const row of rows) if (consumer) await handle(tx, consumer, toFact(row));
    if (next) {
      const pause_ms = unknown ? limits.unexpected_pause_ms_max : 0;
      return this.#setTimer(tx, { ...held, fact_id: next.id }, this.#clock.now() + pause_ms);
    }
    await deletePassedFactsOf(tx, held.about);
    tx.afterCommit(() => this.#held.delete(ref));
  }

  #setTimer(tx: Tx, payload: Held, due_at: number): void {
    const ref = timerRef(payload.consumer, payload.about);
    putTimer(tx, { kind: 'fact_retry', ref, due_at, payload: JSON.stringify(payload) });
    tx.wake('timers', null);
  }
}

type Held = Extract<TimerPayloads['fact_retry'], { about: string }>;

function toHeld(payload: TimerPayloads['fact_retry']): Held {
  if ('about' in payload) return payload;
  return { ...payload, about: payload.facts[0]!.ref, fact_id: Number.MAX_SAFE_INTEGER };
}

/** Identifies the timer for facts about a record that a consumer passed without handling them. */
function timerRef(consumer: string, about: string): string {
  return `${consumer} ${about}`;
}

function aboutOf(timer_ref: string): string {
  return timer_ref.slice(timer_ref.indexOf(' ') + 1);
}

async function handle(tx: Tx, consumer: Consumer, fact: Fact): Promise<void> {
  const handler = consumer.handlers[fact.kind] as ((tx: Tx, fact: Fact) => Promise<void>) | undefined;
  await handler?.(tx, fact);
}

/** Whether handlers fail only because the database does. */
function isOfStore(error: unknown): boolean {
  return error instanceof Problem && error.is_of_store;
}

function toFact({ id, ts, kind, ref, payload }: FactRow): Fact {
  return { id, ts_ms: ts, kind: kind as FactKind, ref, payload: JSON.parse(payload) };
}
