/**
 * The body of a transaction while it runs, and the guard that ends bodies that wait for anything but their own
 * statements. A body without a statement in progress that has not ended once no microtasks are left waits for something
 * else. In SQLite no statement is ever in progress: each runs when it is called, and its promise is already settled. So
 * there, a body that only waits for its own statements ends within microtasks: no timer and no I/O callback runs in
 * between, and no other body either.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { limits } from './limits.ts';
import { ForeignWait, NestedTransaction, TransactionEnded } from './store.ts';

/** The transaction whose body is running. */
const current = new AsyncLocalStorage<Body>();

// Tests may replace the one of `process`.
const { nextTick } = process;

/**
 * For tests: each `write` runs, is rolled back and runs again, as after a failed commit. This finds bodies that cannot run
 * again.
 */
export const BODIES_RUN_TWICE = process.env.SVC_TEST_RUN_BODIES_TWICE === '1';

/** What the transactions of all databases have in common. */
export abstract class Body {
  /** Transactions with the same value must not be nested. */
  abstract readonly database: object;
  #open = true;
  /** Statements that the database has not answered. */
  #in_progress = 0;
  #last_statement: string | null = null;
  /** Run when the body has succeeded. */
  readonly #endings: (() => Promise<void>)[] = [];
  #reject: (() => void) | null = null;
  /** Transactions have ascending numbers. */
  readonly number = ++begun;

  get is_open(): boolean {
    return this.#open;
  }

  /**
   * Runs the body with this transaction, and ends the transaction with it. Throws what the body throws, or
   * `ForeignWait`. `caller` is named in that error.
   */
  execute<T>(body: (tx: this) => Promise<T> | T, caller?: Caller): Promise<T> {
    running.add(this);
    arm();
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
      const succeed = (result: T) => {
        this.#end();
        resolve(result);
      };
      const fail = (error: unknown) => {
        this.#end();
        reject(error);
      };
      const conclude = (result: T) => {
        if (this.#endings.length === 0) succeed(result);
        else current.run(this, () => this.#runEndings()).then(() => succeed(result), fail);
      };
      if (value instanceof Promise) value.then(conclude, fail);
      else conclude(value);
    });
  }

  /** `ending` runs as the last part of the body, if the body succeeds. */
  protected addEnding(ending: () => Promise<void>): void {
    this.checkOpen();
    this.#endings.push(ending);
  }

  async #runEndings(): Promise<void> {
    for (const ending of this.#endings) await ending();
  }

  /** Ends the body with `ForeignWait`, unless a statement is in progress. */
  failIfWaiting(): void {
    if (this.#in_progress > 0) return;
    this.#end();
    this.onForeignWait();
    this.#reject?.();
  }

  #end(): void {
    this.#open = false;
    running.delete(this);
  }

  /** Called when the body is about to fail with `ForeignWait`. */
  protected onForeignWait(): void {}

  /** Throws `TransactionEnded` once the body has ended. */
  protected checkOpen(): void {
    if (!this.#open) throw new TransactionEnded();
  }

  /** Like `checkOpen`. Also records the statement for errors. */
  protected beginStatement(sql: string): void {
    this.checkOpen();
    this.#last_statement = sql;
  }

  /** The body may wait for `answer`, which comes from the database. */
  protected async waitFor<T>(answer: Promise<T>): Promise<T> {
    this.#in_progress++;
    try {
      return await answer;
    } finally {
      this.#in_progress--;
      if (this.#in_progress === 0) arm();
    }
  }
}

/** Throws `NestedTransaction` if the body of a transaction on one of these databases calls this. */
export function checkNotInBody(...databases: readonly object[]): void {
  const body = current.getStore();
  if (body?.is_open && databases.includes(body.database)) throw new NestedTransaction();
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

/** Transactions whose bodies have not ended, in the order of their beginnings. */
const running = new Set<Body>();
let begun = 0;
let armed = false;

/**
 * Fails the bodies that wait for something else when no microtasks are left. Only waiting for `process.nextTick` may go
 * unnoticed, which is harmless: no timers and no I/O run meanwhile.
 */
function arm(): void {
  if (armed) return;
  armed = true;
  // A tick that a microtask requests comes after all microtasks, but before timers and I/O.
  queueMicrotask(requestCheck);
}

function requestCheck(): void {
  nextTick(check, begun);
}

/** Checks the bodies up to the transaction with this number. Later ones may not have had their microtasks yet. */
function check(number: number): void {
  armed = false;
  for (const body of running) {
    if (body.number > number) {
      arm();
      break;
    }
    body.failIfWaiting();
  }
}
