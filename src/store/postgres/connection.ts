/** Connections to PostgreSQL: they send statements without waiting for the answers to earlier ones. */
import pg from 'pg';
import type { Logger } from '../../base/log.ts';
import { Problem } from '../../core/problem.ts';
import type { PostgresServer } from '../store.ts';
import { clientConfig } from './client-config.ts';
import { toParameter, types } from './dialect.ts';
import { Disconnected, isDisconnection } from './errors.ts';
import { HISTORY } from './history.ts';
import { limits } from './limits.ts';
import type { Member } from './member.ts';

/**
 * What one statement returned; `command` is for example `COMMIT`, and `changes` how many rows it selected or changed.
 * `rows` contains objects, or arrays if they were requested.
 */
export interface Result {
  rows: unknown[];
  command: string;
  changes: number;
}

export class Connection {
  /** The server's process, for `pg_terminate_backend`. */
  readonly process_id: number;
  readonly #client: pg.PoolClient;
  #lost = false;
  #released = false;

  constructor(client: pg.PoolClient) {
    this.#client = client;
    this.process_id = (client as unknown as { processID: number }).processID;
  }

  /** Throws `Disconnected`, or the server's error. Statements run in the order of the calls. */
  async query(sql: string, parameters: readonly unknown[] = [], as_arrays = false): Promise<Result> {
    try {
      const values = parameters.map(toParameter);
      const result = as_arrays
        ? await this.#client.query({ text: sql, values, rowMode: 'array' })
        : await this.#client.query({ text: sql, values });
      return { rows: result.rows, command: result.command, changes: result.rowCount ?? 0 };
    } catch (error) {
      if (!isDisconnection(error)) throw error;
      this.#lost = true;
      throw new Disconnected(error);
    }
  }

  /** Ends its use. Statements that are not answered are still executed, before those of the next user. Idempotent. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#client.release(this.#lost);
  }
}

export interface PostgresOptions extends PostgresServer {
  log: Logger;
  /** How many connections read and write, at least 2. Absent: `limits.connections`. */
  connections?: number;
  /** The plane that opens the database, for others that find it in use, for example `pid 1 on host`. */
  holder?: string;
  /** Set if several planes share the database: then this one waits until none of the others is active. */
  member?: Member;
  /** Called once if another plane has taken the database over. Nothing can be written any more. */
  onClaimLost?: (problem: Problem) => void;
}

/** A bounded number of connections, which are opened when they are needed. */
export class ConnectionPool {
  readonly #pool: pg.Pool;

  /**
   * `checkHistory` gets the history of the server (see `history.ts`) before a connection is used, and throws if it must not be
   * used. `settings` are settings of the server for these connections.
   */
  constructor(
    options: PostgresOptions,
    size: number,
    checkHistory: (history: string) => void,
    settings: Record<string, string> = {},
  ) {
    this.#pool = new pg.Pool({
      ...clientConfig(options, settings),
      max: size,
      pipeline: true,
      types,
      idleTimeoutMillis: limits.idle_ms,
      lock_timeout: limits.lock_ms_max,
      idle_in_transaction_session_timeout: limits.silent_transaction_ms_max,
      onConnect: async (client: pg.ClientBase) => {
        // Statements report the loss of their connection. Without a listener, it would end the process too.
        client.on('error', () => {});
        const { rows } = await client.query<{ history: string }>(HISTORY);
        checkHistory(rows[0]!.history);
      },
    });
    // The error has the client with its settings as a property.
    this.#pool.on('error', ({ message }) =>
      options.log.warn({ reason: message }, 'lost an unused connection to PostgreSQL'),
    );
  }

  /** How many connections are open, and how many callers wait for one. */
  get use(): { open: number; waiting: number } {
    return { open: this.#pool.totalCount, waiting: this.#pool.waitingCount };
  }

  /** Waits for a connection. The caller releases it. Throws `Disconnected`, or the problem that `checkHistory` throws. */
  async acquire(): Promise<Connection> {
    try {
      return new Connection(await this.#pool.connect());
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Disconnected(error);
    }
  }

  /** Closes the connections once they are released. */
  close(): Promise<void> {
    return this.#pool.end();
  }
}
