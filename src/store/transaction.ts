/**
 * Transactions as their bodies see them, and the guard that ends the bodies that wait for something else. In SQLite,
 * each statement runs when it is called, and its promise is already settled. So a body that only waits for its own
 * statements ends within microtasks: no timer and no I/O callback runs in between, and no other body either.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Compilable } from 'kysely';
import { type Connection, kysely } from './connection.ts';
import { limits } from './limits.ts';
import { ForeignWait, NestedTransaction, type Reader, TransactionEnded, type Tx } from './store.ts';

/** The transaction whose body is running. */
const current = new AsyncLocalStorage<ReadTransaction>();

// Tests may replace the one of `process`.
const { nextTick } = process;

export class ReadTransaction implements Reader {
  readonly sql = kysely;
  protected readonly connection: Connection;
  /** Values computed from the same snapshot. Null in a write, where each statement may change them. */
  readonly #memos: Map<string, unknown> | null;
  #open = true;
  #last_statement: string | null = null;
  #reject: (() => void) | null = null;
  /** Transactions have ascending numbers. */
  readonly number = ++begun;

  constructor(connection: Connection, memos: Map<string, unknown> | null) {
    this.connection = connection;
    this.#memos = memos;
  }

  get database(): object {
    return this.connection.db;
  }

  get is_open(): boolean {
    return this.#open;
  }

  async all<Row>(query: Compilable<Row>): Promise<Row[]> {
    const { sql, parameters } = this.compile(query);
    return this.connection.all(sql, parameters) as Row[];
  }

  async get<Row>(query: Compilable<Row>): Promise<Row | undefined> {
    const { sql, parameters } = this.compile(query);
    return this.connection.get(sql, parameters) as Row | undefined;
  }

  async arrays(query: Compilable<unknown>): Promise<(readonly unknown[])[]> {
    const { sql, parameters } = this.compile(query);
    return this.connection.arrays(sql, parameters);
  }

  async each(query: Compilable<unknown>, visit: (row: readonly unknown[]) => boolean): Promise<void> {
    const { sql, parameters } = this.compile(query);
    this.connection.each(sql, parameters, visit);
  }

  async memo<T>(key: string, compute: () => Promise<T> | T): Promise<T> {
    this.checkOpen();
    const memos = this.#memos;
    if (memos === null) return compute();
    const known = memos.get(key);
    // Another body may still be computing it, which takes microtasks.
    if (known !== undefined) return (await known) as T;
    const value = call(compute);
    if (memos.size >= limits.snapshot_memos_max) memos.clear();
    memos.set(key, value);
    try {
      return await value;
    } catch (error) {
      if (memos.get(key) === value) memos.delete(key);
      throw error;
    }
  }

  /**
   * Runs the body with this transaction, and ends the transaction with it. Throws what the body throws, or
   * `ForeignWait`. `caller` is named in that error.
   */
  execute<T>(body: (tx: this) => Promise<T> | T, caller?: Caller): Promise<T> {
    running.add(this);
    if (!armed) arm();
    return new Promise((resolve, reject) => {
      this.#reject = () => reject(foreignWait(body, this.#last_statement, caller));
      let value: Promise<T> | T;
      try {
        value = current.run(this, body, this);
      } catch (error) {
        this.#end();
        reject(error);
        return;
      }
      if (!(value instanceof Promise)) {
        this.#end();
        resolve(value);
        return;
      }
      value.then(
        (result) => {
          this.#end();
          resolve(result);
        },
        (error) => {
          this.#end();
          reject(error);
        },
      );
    });
  }

  /** Ends the body with `ForeignWait`. */
  fail(): void {
    this.#end();
    // Otherwise, later bodies would wait for what this one was computing.
    this.#memos?.clear();
    this.#reject?.();
  }

  #end(): void {
    this.#open = false;
    running.delete(this);
  }

  /** Throws `TransactionEnded` once the body has ended. */
  protected checkOpen(): void {
    if (!this.#open) throw new TransactionEnded();
  }

  protected compile(query: Compilable<unknown>): { sql: string; parameters: readonly unknown[] } {
    this.checkOpen();
    const compiled = query.compile();
    this.#last_statement = compiled.sql;
    return compiled;
  }
}

export class WriteTransaction extends ReadTransaction implements Tx {
  readonly #callbacks: (() => void)[];

  /** `callbacks` receives the functions to call after the commit. */
  constructor(connection: Connection, callbacks: (() => void)[]) {
    super(connection, null);
    this.#callbacks = callbacks;
  }

  async run(query: Compilable<unknown>): Promise<{ changes: number }> {
    const { sql, parameters } = this.compile(query);
    return this.connection.run(sql, parameters);
  }

  async runEach(query: Compilable<unknown>, sets: readonly (readonly unknown[])[]): Promise<void> {
    const { sql } = this.compile(query);
    for (const parameters of sets) this.connection.run(sql, parameters);
  }

  afterCommit(fn: () => void): void {
    this.checkOpen();
    this.#callbacks.push(fn);
  }
}

/** Throws `NestedTransaction` if the body of a transaction on one of these connections calls this. */
export function checkNotInBody(...connections: readonly Connection[]): void {
  const tx = current.getStore();
  if (tx?.is_open && connections.some(({ db }) => db === tx.database)) throw new NestedTransaction();
}

/** Where a transaction was started. */
export interface Caller {
  /** As V8 formats it, which happens when it is read. */
  readonly stack?: string;
}

/** The caller of `fn`. Takes about a microsecond. */
export function callerOf(fn: (...args: never) => unknown): Caller {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = limits.caller_stack_frames;
  const caller: Caller = {};
  Error.captureStackTrace(caller, fn);
  Error.stackTraceLimit = limit;
  return caller;
}

function foreignWait(body: unknown, statement: string | null, caller: Caller | undefined): ForeignWait {
  const text = String(body).replaceAll(/\s+/g, ' ');
  const error = new ForeignWait(text.slice(0, limits.quoted_body_chars), statement);
  const frames = caller?.stack?.split('\n').slice(1) ?? [];
  error.stack = [`${error.name}: ${error.message}`, ...frames].join('\n');
  return error;
}

async function call<T>(fn: () => Promise<T> | T): Promise<T> {
  return fn();
}

/** Transactions whose bodies have not ended, in the order of their beginnings. */
const running = new Set<ReadTransaction>();
let begun = 0;
let armed = false;

/**
 * Fails the bodies that have not ended when no microtasks are left, because then they wait for something else. Only
 * waiting for `process.nextTick` may go unnoticed, which is harmless: no timers and no I/O run meanwhile.
 */
function arm(): void {
  armed = true;
  // A tick that a microtask requests comes after all microtasks, but before timers and I/O.
  queueMicrotask(requestCheck);
}

function requestCheck(): void {
  nextTick(check, begun);
}

/** Fails the bodies up to the transaction with this number. Later ones may not have had their microtasks yet. */
function check(number: number): void {
  armed = false;
  for (const tx of running) {
    if (tx.number > number) break;
    tx.fail();
  }
  if (running.size > 0) arm();
}
