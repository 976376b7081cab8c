/** Connections to PostgreSQL: they send statements without waiting for the answers to earlier ones. */
import pg from 'pg';
import type { Logger } from '../../base/log.ts';
import type { PostgresServer } from '../store.ts';
import { toParameter, types } from './dialect.ts';
import { Disconnected, isDisconnection } from './errors.ts';
import { limits } from './limits.ts';

/**
 * What one statement returned; `command` is for example `COMMIT`, and `changes` how many rows it selected or changed.
 * `rows` contains objects, or arrays if they were requested.
 */
export interface Result {
  rows: unknown[];
  command: string;
  changes: number;
}

/**
 * Identifies the history of a server's transactions. It differs after a failover to a standby, which may lack the last
 * commits, and whose transaction ids say nothing about those of the old server.
 */
const HISTORY = `
  SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS history
  FROM pg_control_system()`;

export class Connection {
  readonly history: string;
  /** The server's process, for `pg_terminate_backend`. */
  readonly process_id: number;
  readonly #client: pg.PoolClient;
  #lost = false;
  #released = false;

  constructor(client: pg.PoolClient, history: string) {
    this.#client = client;
    this.history = history;
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
}

/** A bounded number of connections, which are opened when they are needed. */
export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #histories = new WeakMap<object, string>();

  /** `settings` are settings of the server for these connections. */
  constructor({ url, log }: PostgresOptions, size: number, settings: Record<string, string> = {}) {
    const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'svc',
      max: size,
      pipeline: true,
      types,
      keepAlive: true,
      keepAliveInitialDelayMillis: limits.keepalive_ms,
      connectionTimeoutMillis: limits.connect_ms_max,
      idleTimeoutMillis: limits.idle_ms,
      lock_timeout: limits.lock_ms_max,
      idle_in_transaction_session_timeout: limits.silent_transaction_ms_max,
      ...(options.length > 0 && { options: options.join(' ') }),
      onConnect: async (client: pg.ClientBase) => {
        // Statements report the loss of their connection. Without a listener, it would end the process too.
        client.on('error', () => {});
        const { rows } = await client.query<{ history: string }>(HISTORY);
        this.#histories.set(client, rows[0]!.history);
      },
    });
    this.#pool.on('error', (error) => log.warn({ err: error }, 'lost an unused connection to PostgreSQL'));
  }

  /** Waits for a connection. The caller releases it. Throws `Disconnected`. */
  async acquire(): Promise<Connection> {
    try {
      const client = await this.#pool.connect();
      return new Connection(client, this.#histories.get(client)!);
    } catch (error) {
      throw new Disconnected(error);
    }
  }

  /** Closes the connections once they are released. */
  close(): Promise<void> {
    return this.#pool.end();
  }
}
