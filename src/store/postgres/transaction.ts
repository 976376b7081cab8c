/** Transactions on PostgreSQL, as their bodies see them. */
import type { Compilable } from 'kysely';
import type { Logger } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import { BODIES_RUN_TWICE, Body, type Caller } from '../body.ts';
import type { Reader, Tx } from '../store.ts';
import { AfterCommit, type LocalWakes, type WakeKey, type WakeTopic } from '../wakes.ts';
import type { Claim } from './claim.ts';
import type { Connection, Result } from './connection.ts';
import { kysely } from './dialect.ts';
import { canRunAgain } from './errors.ts';
import { limits } from './limits.ts';
import type { Reads } from './reads.ts';

export class ReadTransaction extends Body implements Reader {
  readonly sql = kysely;
  override readonly database: object;
  readonly connection: Connection;
  /** Statements that are sent before the first one of the body, in one message. */
  readonly #opening: string;
  #begun = false;
  #cursors = 0;
  #failure: unknown = null;
  /** The answers to statements that the body does not wait for. They never reject. */
  readonly #in_background: Promise<unknown>[] = [];

  /** `database` identifies the store. */
  constructor(database: object, connection: Connection, opening: string) {
    super();
    this.database = database;
    this.connection = connection;
    this.#opening = opening;
  }

  /** The first error of a statement. The server rejects all statements after it. Null if there was none. */
  get failure(): unknown {
    return this.#failure;
  }

  async all<Row>(query: Compilable<Row>): Promise<Row[]> {
    const { rows } = await this.query(query);
    return rows as Row[];
  }

  async get<Row>(query: Compilable<Row>): Promise<Row | undefined> {
    const [row] = await this.all(query);
    return row;
  }

  async arrays(query: Compilable<unknown>): Promise<(readonly unknown[])[]> {
    const { rows } = await this.query(query, true);
    return rows as unknown[][];
  }

  async each(query: Compilable<unknown>, visit: (row: readonly unknown[]) => boolean): Promise<void> {
    this.checkOpen();
    const { sql, parameters } = query.compile();
    const cursor = `visit_${++this.#cursors}`;
    const fetch = async (count: number) => {
      const { rows } = await this.send(`FETCH ${count} FROM ${cursor}`, [], true);
      return rows as unknown[][];
    };
    let count: number = limits.fetch_rows_min;
    const declared = this.send(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${sql}`, parameters);
    let [, rows] = await Promise.all([declared, fetch(count)]);
    while (rows.every(visit) && rows.length === count) {
      count = Math.min(count * limits.fetch_rows_factor, limits.fetch_rows_max);
      rows = await fetch(count);
    }
    this.inBackground(this.send(`CLOSE ${cursor}`));
  }

  /** Commits. Throws `Disconnected` if the answer was lost, or why nothing was committed. */
  async commit(): Promise<void> {
    if (!this.#begun) return;
    if (this.#failure !== null) {
      this.finish();
      throw this.#failure;
    }
    const { command } = await this.connection.query('COMMIT');
    // The answers have arrived, but not everything that waits for them has run.
    await this.answered();
    // A statement failed that the body did not wait for.
    if (command !== 'COMMIT') throw this.#failure ?? new Error('PostgreSQL rolled back the transaction');
  }

  /** Resolves when the statements that the body did not wait for have been answered. Only then is `failure` final. */
  async answered(): Promise<void> {
    await Promise.all(this.#in_background);
  }

  /** Sends the end of the transaction. Its outcome does not matter. */
  finish(): void {
    if (this.#begun) this.connection.query('ROLLBACK').catch(() => {});
  }

  protected query(query: Compilable<unknown>, as_arrays = false): Promise<Result> {
    this.checkOpen();
    const { sql, parameters } = query.compile();
    return this.send(sql, parameters, as_arrays);
  }

  protected async send(sql: string, parameters: readonly unknown[] = [], as_arrays = false): Promise<Result> {
    this.beginStatement(sql);
    if (this.#failure !== null) throw this.#failure;
    this.begin();
    try {
      return await this.waitFor(this.connection.query(sql, parameters, as_arrays));
    } catch (error) {
      this.#failure ??= error;
      throw this.#failure;
    }
  }

  /** Whether the body has sent a statement. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Sends the opening statements, unless they were sent. */
  protected begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.sendOpening();
  }

  protected sendOpening(): void {
    this.inBackground(this.connection.query(this.#opening));
  }

  /** A failure is reported by the next statement, or by the commit. */
  protected inBackground(answer: Promise<unknown>): void {
    const settled = answer.catch((error: unknown) => {
      this.#failure ??= error;
    });
    this.#in_background.push(settled);
  }
}

/** The body of a write, and who started it. */
export interface Work<T> {
  body: (tx: Tx) => Promise<T> | T;
  caller: Caller;
}

export type Outcome<T> = { value: T } | { error: unknown };

/** In this space of keys, the first half is the same for all turns. See `schema/numbers.ts` for the keys of other locks. */
const TAKE_TURN = 'SELECT 1 FROM pg_advisory_xact_lock(1, hashtext($1))';

interface WritingOptions {
  database: object;
  connection: Connection;
  opening?: string;
  /** With a connection of their own, and a new snapshot each. */
  reads: Pick<Reads, 'once'>;
}

/** What the bodies of writes see: a whole transaction, or a part of one. */
abstract class Writing extends ReadTransaction implements Tx {
  /** To run after the commit. */
  after_commit: AfterCommit | null = null;
  readonly reads: Pick<Reads, 'once'>;

  constructor({ database, connection, opening = '', reads }: WritingOptions) {
    super(database, connection, opening);
    this.reads = reads;
  }

  async run(query: Compilable<unknown>): Promise<{ changes: number }> {
    const { changes } = await this.query(query);
    return { changes };
  }

  queue<Row>(query: Compilable<Row>, use?: (rows: Row[]) => void): void {
    // Throws to the caller too, not only to the transaction.
    this.checkOpen();
    const { sql, parameters } = query.compile();
    const answer = this.send(sql, parameters);
    this.inBackground(use === undefined ? answer : answer.then(({ rows }) => use(rows as Row[])));
  }

  async runEach(query: Compilable<unknown>, sets: readonly (readonly unknown[])[]): Promise<void> {
    this.checkOpen();
    const { sql } = query.compile();
    await Promise.all(sets.map((parameters) => this.send(sql, parameters)));
  }

  /** The first row that a statement returns. */
  async first<Row>(sql: string, parameters: readonly unknown[]): Promise<Row | undefined> {
    const { rows } = await this.send(sql, parameters);
    return rows[0] as Row | undefined;
  }

  wake(topic: WakeTopic, key: WakeKey): void {
    this.checkOpen();
    this.after_commit ??= new AfterCommit();
    this.after_commit.wake(topic, key);
  }

  afterCommit(fn: () => void): void {
    this.checkOpen();
    this.after_commit ??= new AfterCommit();
    this.after_commit.add(fn);
  }

  atEnd<T>(turn: string, last: (reader: Reader) => Promise<T>, fn: (found: T) => Promise<T>): void {
    this.addEnding(async () => {
      await fn(await this.takeTurn(turn, last));
    });
  }

  /** Waits until this transaction has the turn, and returns what `last` finds then. */
  protected async takeTurn<T>(turn: string, last: (reader: Reader) => Promise<T>): Promise<T> {
    await this.send(TAKE_TURN, [turn]);
    // The snapshot of this transaction is older than the turn.
    return this.waitFor(this.reads.once(last));
  }
}

export class WriteTransaction extends Writing {
  readonly #claim: Claim;
  #claimed: Promise<void> | undefined;
  #xid: string | null = null;
  #begun_at_ms: number | null = null;
  /** The last part that sent a statement has a savepoint. */
  #has_savepoint = false;
  /** To run after the commit, for each part. */
  readonly #after_parts: AfterCommit[] = [];
  /** The turns that parts have taken, and what the next one would find. */
  readonly #turns = new Map<string, unknown>();

  constructor({ claim, ...of }: WritingOptions & { claim: Claim }) {
    super(of);
    this.#claim = claim;
  }

  /** When the server had begun the transaction and given it its lock (`performance.now()`); null before its answer. */
  get begun_at_ms(): number | null {
    return this.#begun_at_ms;
  }

  /** The id of the transaction, with which its outcome can be looked up. Null if it sent no statement. */
  get xid(): string | null {
    return this.#xid;
  }

  /**
   * Runs a body as a part of this transaction, after all earlier parts. Resolves to what it returned, or to the error with
   * which it alone was rolled back. Throws if the whole transaction has failed, perhaps because of an earlier part.
   */
  part<T>(work: Work<T>): Promise<Outcome<T>> {
    return this.waitFor(this.#runPart(work));
  }

  async #runPart<T>({ body, caller }: Work<T>): Promise<Outcome<T>> {
    if (BODIES_RUN_TWICE) this.#rollBack((await this.#try(body, caller)).part);
    const { part, outcome } = await this.#try(body, caller);
    if ('value' in outcome) this.#keep(part);
    else this.#rollBack(part);
    return outcome;
  }

  async #try<T>(body: Work<T>['body'], caller: Caller): Promise<{ part: Part; outcome: Outcome<T> }> {
    const part = new Part(this, this.#turns);
    try {
      return { part, outcome: { value: await part.execute(body, caller) } };
    } catch (error) {
      await part.answered();
      // An earlier part may have failed at a statement for which it did not wait.
      await this.answered();
      if (this.failure !== null) throw this.failure;
      if (canRunAgain(part.failure)) throw part.failure;
      return { part, outcome: { error } };
    }
  }

  #rollBack(part: Part): void {
    if (part.begun) this.inBackground(this.connection.query(`ROLLBACK TO ${SAVEPOINT}`));
  }

  #keep(part: Part): void {
    for (const [turn, found] of part.turns) this.#turns.set(turn, found);
    if (part.after_commit !== null) this.#after_parts.push(part.after_commit);
    this.inBackground(part.succeeded());
  }

  /** Sends the opening statements of the transaction and of a part. */
  beginPart(): void {
    this.begin();
    const opening = this.#has_savepoint ? `RELEASE ${SAVEPOINT}; ${SAVEPOINT}` : SAVEPOINT;
    this.inBackground(this.connection.query(opening));
    this.#has_savepoint = true;
  }

  protected override sendOpening(): void {
    super.sendOpening();
    const { statement } = this.#claim;
    this.#claimed = this.connection.query(statement).then((answer) => {
      this.#begun_at_ms = performance.now();
      this.#xid = (answer.rows as { xid: string }[])[0]?.xid ?? null;
      this.#claim.check(answer);
    });
    this.inBackground(this.#claimed);
  }

  /** Runs the callbacks, and delivers the wakes, of the body and of all parts. Call it after the commit. */
  runAfterCommit(wakes: LocalWakes, log: Logger): void {
    this.after_commit?.run(wakes, log);
    for (const after of this.#after_parts) after.run(wakes, log);
  }

  /** Resolves if the plane has the claim, or if that is not known. Throws the problem `claim_lost`. */
  async claimed(): Promise<void> {
    await this.#claimed?.catch((error: unknown) => {
      if (error instanceof Problem) throw error;
    });
  }

  override async commit(): Promise<void> {
    try {
      await this.claimed();
    } catch (error) {
      // The next user of the connection would be in this transaction.
      this.finish();
      throw error;
    }
    await super.commit();
  }
}

const SAVEPOINT = 'SAVEPOINT part';

/** A part of a transaction that can be rolled back alone. */
class Part extends Writing {
  /** The turns that it has taken, and what the next one would find. It loses them if it is rolled back. */
  readonly turns = new Map<string, unknown>();
  readonly #whole: WriteTransaction;
  readonly #earlier_turns: ReadonlyMap<string, unknown>;

  constructor(whole: WriteTransaction, earlier_turns: ReadonlyMap<string, unknown>) {
    super(whole);
    this.#whole = whole;
    this.#earlier_turns = earlier_turns;
  }

  override atEnd<T>(turn: string, last: (reader: Reader) => Promise<T>, fn: (found: T) => Promise<T>): void {
    this.addEnding(async () => {
      // The whole transaction keeps a turn until its commit. Until then, only its parts know what they wrote.
      const known = this.turns.has(turn) ? this.turns : this.#earlier_turns;
      const found = known.has(turn) ? (known.get(turn) as T) : await this.takeTurn(turn, last);
      this.turns.set(turn, await fn(found));
    });
  }

  protected override sendOpening(): void {
    this.#whole.beginPart();
  }

  /** Rejects if a statement failed for which the body did not wait. */
  async succeeded(): Promise<void> {
    await this.answered();
    if (this.failure !== null) throw this.failure;
  }
}
