/** Transactions on PostgreSQL, as their bodies see them. */
import type { Compilable } from 'kysely';
import { Problem } from '../../core/problem.ts';
import { Body, Memos } from '../body.ts';
import type { Reader, Tx } from '../store.ts';
import { AfterCommit, type WakeKey, type WakeTopic } from '../wakes.ts';
import type { Claim } from './claim.ts';
import type { Connection, Result } from './connection.ts';
import { kysely } from './dialect.ts';
import { limits } from './limits.ts';
import type { Reads } from './reads.ts';

export class ReadTransaction extends Body implements Reader {
  readonly sql = kysely;
  override readonly database: object;
  protected readonly connection: Connection;
  /** Statements that are sent before the first one of the body, in one message. */
  readonly #opening: string;
  readonly #memos = new Memos();
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

  async memo<T>(key: string, compute: () => Promise<T> | T): Promise<T> {
    this.checkOpen();
    return this.#memos.get(key, compute);
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
    if (!this.#begun) {
      this.#begun = true;
      this.inBackground(this.connection.query(this.#opening));
      this.onBegun();
    }
    try {
      return await this.waitFor(this.connection.query(sql, parameters, as_arrays));
    } catch (error) {
      this.#failure ??= error;
      throw this.#failure;
    }
  }

  /** Called after the opening statements were sent, before the first one of the body. */
  protected onBegun(): void {}

  /** A failure is reported by the next statement, or by the commit. */
  protected inBackground(answer: Promise<unknown>): void {
    const settled = answer.catch((error: unknown) => {
      this.#failure ??= error;
    });
    this.#in_background.push(settled);
  }
}

/** In this space of keys, the first half is the same for all turns. See `schema/numbers.ts` for the keys of other locks. */
const TAKE_TURN = 'SELECT 1 FROM pg_advisory_xact_lock(1, hashtext($1))';

export class WriteTransaction extends ReadTransaction implements Tx {
  /** To run after the commit. */
  after_commit: AfterCommit | null = null;
  readonly #claim: Claim;
  readonly #reads: Pick<Reads, 'once'>;
  #claimed: Promise<void> | undefined;
  #xid: string | null = null;

  /** `reads` have a connection of their own, and a new snapshot each. */
  constructor(of: {
    database: object;
    connection: Connection;
    opening: string;
    claim: Claim;
    reads: Pick<Reads, 'once'>;
  }) {
    super(of.database, of.connection, of.opening);
    this.#claim = of.claim;
    this.#reads = of.reads;
  }

  /** The id of the transaction, with which its outcome can be looked up. Null if it sent no statement. */
  get xid(): string | null {
    return this.#xid;
  }

  async run(query: Compilable<unknown>): Promise<{ changes: number }> {
    const { changes } = await this.query(query);
    return { changes };
  }

  queue<Row>(query: Compilable<Row>, use?: (rows: Row[]) => void): void {
    // Whoever calls it after the end hears of it, and not only the transaction.
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

  override async memo<T>(_key: string, compute: () => Promise<T> | T): Promise<T> {
    this.checkOpen();
    return compute();
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

  atEnd<T>(turn: string, last: (reader: Reader) => Promise<T>, fn: (found: T) => Promise<void>): void {
    this.addEnding(async () => {
      await this.send(TAKE_TURN, [turn]);
      // The snapshot of this transaction is older than the turn.
      await fn(await this.waitFor(this.#reads.once(last)));
    });
  }

  protected override onBegun(): void {
    const { statement } = this.#claim;
    this.#claimed = this.connection.query(statement).then((answer) => {
      this.#xid = (answer.rows as { xid: string }[])[0]?.xid ?? null;
      this.#claim.check(answer);
    });
    this.inBackground(this.#claimed);
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
