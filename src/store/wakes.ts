/**
 * Wakes say that something changed, and never what. A transaction wakes a key of a topic. After its commit, the listeners
 * read the key's state from the database again. So a wake may come twice or without a change, and it can be sent to another
 * process: a topic and a key are all that it consists of.
 */
import type { Logger } from '../base/log.ts';
import { limits } from './limits.ts';

/** Every topic with its keys. Null: the topic has none. */
export interface WakeKeys {
  /** Facts were recorded. */
  facts: null;
  /** Timers were set. */
  timers: null;
  /** The log of an agent, by its number, was deleted. */
  deleted_logs: number;
  /** A session, by its id, changed. */
  sessions: string;
  /** A token, by its id, was changed or revoked. */
  tokens: string;
  /** A user, by id, no longer belongs to a team. */
  memberships: string;
  /** A run, by its number, has new events. */
  run_events: number;
  /** The thread of a task, by its number, has new messages. */
  messages: number;
  /** An actor, by its id, has new mail. */
  mail: string;
  /** The key pair for push services was replaced. */
  push_keys: null;
}
export type WakeTopic = keyof WakeKeys;
/** Null: all keys of the topic. */
export type WakeKey = string | number | null;

export interface Wakes {
  /**
   * Calls `listener` for each key of the topic that is woken. A key of null means that every key may have changed. Listeners
   * run right after the commit, before the write resolves, so they only remember what to read, or drop what they have read.
   * Returns a function that unsubscribes.
   */
  on<T extends WakeTopic>(topic: T, listener: (key: WakeKeys[T] | null) => void): () => void;
  /** Calls `listener` each time this key may have changed. Otherwise like `on`. */
  onKey<T extends WakeTopic>(topic: T, key: WakeKeys[T], listener: () => void): () => void;
}

interface Listeners {
  readonly of_topic: Set<(key: never) => void>;
  readonly by_key: Map<WakeKey, Set<() => void>>;
}

/** Wakes within this process. */
export class LocalWakes implements Wakes {
  readonly #log: Logger;
  readonly #topics = new Map<WakeTopic, Listeners>();

  constructor(log: Logger) {
    this.#log = log;
  }

  on<T extends WakeTopic>(topic: T, listener: (key: WakeKeys[T] | null) => void): () => void {
    const { of_topic } = this.#listeners(topic);
    // The same function may be subscribed twice.
    const own = (key: WakeKeys[T] | null) => listener(key);
    of_topic.add(own);
    return () => void of_topic.delete(own);
  }

  onKey<T extends WakeTopic>(topic: T, key: WakeKeys[T], listener: () => void): () => void {
    const { by_key } = this.#listeners(topic);
    const of_key = by_key.get(key) ?? new Set();
    by_key.set(key, of_key);
    const own = () => listener();
    of_key.add(own);
    return () => {
      of_key.delete(own);
      if (of_key.size === 0 && by_key.get(key) === of_key) by_key.delete(key);
    };
  }

  /** Calls the listeners of a key; null: of all keys of the topic. Logs errors of listeners. */
  deliver(topic: WakeTopic, key: WakeKey): void {
    const listeners = this.#topics.get(topic);
    if (listeners === undefined) return;
    const { of_topic, by_key } = listeners;
    for (const listener of of_topic) this.#call(topic, listener as (key: WakeKey) => void, key);
    if (by_key.size === 0) return;
    if (key !== null) this.#callAll(topic, by_key.get(key));
    else for (const of_key of by_key.values()) this.#callAll(topic, of_key);
  }

  #listeners(topic: WakeTopic): Listeners {
    let listeners = this.#topics.get(topic);
    if (listeners === undefined) {
      listeners = { of_topic: new Set(), by_key: new Map() };
      this.#topics.set(topic, listeners);
    }
    return listeners;
  }

  #callAll(topic: WakeTopic, listeners: ReadonlySet<() => void> | undefined): void {
    if (listeners === undefined) return;
    for (const listener of listeners) this.#call(topic, listener, null);
  }

  #call(topic: WakeTopic, listener: (key: WakeKey) => void, key: WakeKey): void {
    try {
      listener(key);
    } catch (error) {
      this.#log.error({ err: error, topic }, 'a listener of a wake failed');
    }
  }
}

/** What a transaction registered for the time after its commit. Ignored after a rollback. */
export class AfterCommit {
  readonly #callbacks: (() => void)[] = [];
  // Transactions wake few keys. Two keys take 0.09 µs in lists, and 0.18 µs in a map of sets.
  readonly #topics: WakeTopic[] = [];
  readonly #keys: WakeKey[] = [];

  add(callback: () => void): void {
    this.#callbacks.push(callback);
  }

  /** Adds a wake that is not there yet. Too many are replaced by a wake of the whole topic. */
  wake(topic: WakeTopic, key: WakeKey): void {
    for (let i = 0; i < this.#topics.length; i++) {
      if (this.#topics[i] === topic && (this.#keys[i] === key || this.#keys[i] === null)) return;
    }
    if (key === null || this.#topics.length >= limits.wakes_per_transaction_max) this.#addWhole(topic);
    else this.#add(topic, key);
  }

  /** Runs the callbacks in the order of their registration, then delivers the wakes. Logs errors of callbacks. */
  run(wakes: LocalWakes, log: Logger): void {
    for (const callback of this.#callbacks) {
      try {
        callback();
      } catch (error) {
        log.error({ err: error }, 'a callback after a commit failed');
      }
    }
    for (let i = 0; i < this.#topics.length; i++) wakes.deliver(this.#topics[i]!, this.#keys[i]!);
  }

  #add(topic: WakeTopic, key: WakeKey): void {
    this.#topics.push(topic);
    this.#keys.push(key);
  }

  #addWhole(topic: WakeTopic): void {
    for (let i = this.#topics.length - 1; i >= 0; i--) {
      if (this.#topics[i] !== topic) continue;
      this.#topics.splice(i, 1);
      this.#keys.splice(i, 1);
    }
    this.#add(topic, null);
  }
}
