/** Transactions on SQLite, as their bodies see them. */
import type { Compilable } from 'kysely';
import { Body } from './body.ts';
import { type Connection, kysely } from './connection.ts';
import type { Reader, Tx } from './store.ts';
import { AfterCommit, type WakeKey, type WakeTopic } from './wakes.ts';

export class ReadTransaction extends Body implements Reader {
  readonly sql = kysely;
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    super();
    this.connection = connection;
  }

  override get database(): object {
    return this.connection.db;
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

  protected compile(query: Compilable<unknown>): { sql: string; parameters: readonly unknown[] } {
    this.checkOpen();
    const compiled = query.compile();
    this.beginStatement(compiled.sql);
    return compiled;
  }
}

export class WriteTransaction extends ReadTransaction implements Tx {
  /** To run after the commit. */
  after_commit: AfterCommit | null = null;

  async run(query: Compilable<unknown>): Promise<{ changes: number }> {
    const { sql, parameters } = this.compile(query);
    return this.connection.run(sql, parameters);
  }

  queue<Row>(query: Compilable<Row>, use?: (rows: Row[]) => void): void {
    const { sql, parameters } = this.compile(query);
    if (use === undefined) this.connection.run(sql, parameters);
    else use(this.connection.all(sql, parameters) as Row[]);
  }

  async runEach(query: Compilable<unknown>, sets: readonly (readonly unknown[])[]): Promise<void> {
    const { sql } = this.compile(query);
    for (const parameters of sets) this.connection.run(sql, parameters);
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

  atEnd<T>(_turn: string, last: (reader: Reader) => Promise<T>, fn: (found: T) => Promise<T>): void {
    this.addEnding(async () => {
      await fn(await last(this));
    });
  }
}
