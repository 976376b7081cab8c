/** Connections to PostgreSQL: they send statements without waiting for the answers to earlier ones. */
import type { Socket } from 'node:net';
import pg from 'pg';
import type { Logger } from '../../base/log.ts';
import type { HostPort } from '../../core/database-url.ts';
import { Problem } from '../../core/problem.ts';
import type { PostgresServer } from '../store.ts';
import { clientConfig } from './client-config.ts';
import { toParameter, types } from './dialect.ts';
import { Again, Disconnected, isDisconnection, isStaleStatement } from './errors.ts';
import { HISTORY } from './history.ts';
import { limits } from './limits.ts';
import type { Member } from './member.ts';
import type { Server } from './server.ts';
import { PreparedStatements, StatementNames } from './statements.ts';

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
  readonly #statements: PreparedStatements;
  #lost = false;
  #released = false;

  constructor(client: pg.PoolClient, statements: PreparedStatements) {
    this.#client = client;
    this.#statements = statements;
    this.process_id = (client as unknown as { processID: number }).processID;
  }

  /**
   * Throws `Disconnected`, `Again` if a prepared statement was outdated, or the server's error. Statements run in the
   * order of the calls. Those that have parameters or select are prepared if they are used often. Others may be several
   * statements in one message, and the answer is that to the last one.
   */
  async query(sql: string, parameters: readonly unknown[] = [], as_arrays = false): Promise<Result> {
    let name: string | undefined;
    try {
      const values = parameters.map(toParameter);
      if (values.length > 0 || sql.startsWith('SELECT ')) name = this.#statements.begin(sql);
      const query = { text: sql, values, ...(name !== undefined && { name }) };
      const answer: pg.QueryResult | pg.QueryResult[] = as_arrays
        ? await this.#client.query({ ...query, rowMode: 'array' })
        : await this.#client.query(query);
      if (name !== undefined) this.#statements.succeeded(name);
      const result = Array.isArray(answer) ? answer.at(-1)! : answer;
      return { rows: result.rows, command: result.command, changes: result.rowCount ?? 0 };
    } catch (error) {
      if (name !== undefined) this.#statements.failed(name);
      if (name !== undefined && isStaleStatement(error)) {
        this.#statements.isStale(name);
        throw new Again(error);
      }
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
  /**
   * Called once if another plane has taken the database over, or if the server may lack commits of this plane: it has failed
   * over, or was restored. Nothing can be written any more.
   */
  onClaimLost?: (problem: Problem) => void;
}

export interface PoolOptions {
  options: PostgresOptions;
  server: Server;
  /** How many connections are open at once at most. */
  size: number;
  /** Gets the history of the server (see `history.ts`) before a connection is used, and throws if it must not be used. */
  checkHistory: (history: string) => void;
  /** Settings of the server for these connections. */
  settings?: Record<string, string>;
}

/**
 * Large values, such as events of output, are compressed with LZ4 if the server can: PostgreSQL's own method takes most of
 * the time of their insertion. Values that are already stored remain readable.
 */
const COMPRESS_QUICKLY = `
  SELECT set_config(name, 'lz4', false) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`;

/** A bounded number of connections, which are opened when they are needed. */
export class ConnectionPool {
  /** How many connections are open at once at most. */
  readonly size: number;
  readonly #pool: pg.Pool;
  readonly #names = new StatementNames();
  /** Those of each connected client. */
  readonly #statements = new WeakMap<object, PreparedStatements>();

  /** The clients that are connected. */
  readonly #clients = new Set<pg.ClientBase>();

  constructor({ options, server, size, checkHistory, settings = {} }: PoolOptions) {
    this.size = size;
    this.#pool = new pg.Pool({
      Client: clientOf(options, server, settings),
      connectionTimeoutMillis: limits.connect_ms_max,
      max: size,
      idleTimeoutMillis: limits.idle_ms,
      onConnect: async (client: pg.ClientBase) => {
        // Statements report the loss of their connection. Without a listener, it would end the process too.
        client.on('error', () => {});
        this.#clients.add(client);
        client.once('end', () => this.#clients.delete(client));
        const { to } = client as ServerClient;
        try {
          const query = { text: HISTORY, query_timeout: limits.connect_ms_max };
          const { rows } = await client.query<{ history: string }>(query);
          checkHistory(rows[0]!.history);
          await client.query(COMPRESS_QUICKLY);
        } catch (error) {
          server.failed(error, to);
          throw error;
        }
        server.answered();
        this.#statements.set(client, new PreparedStatements(this.#names));
      },
    });
    // The error has the client with its settings as a property.
    this.#pool.on('error', ({ message }) =>
      options.log.debug({ reason: message }, 'lost an unused connection to PostgreSQL'),
    );
    server.onUnreachable(() => this.#abandon());
  }

  /** How many connections are open, and how many callers wait for one. */
  get use(): { open: number; waiting: number } {
    return { open: this.#pool.totalCount, waiting: this.#pool.waitingCount };
  }

  /** Waits for a connection. The caller releases it. Throws `Disconnected`, or the problem that `checkHistory` throws. */
  async acquire(): Promise<Connection> {
    try {
      const client = await this.#pool.connect();
      return new Connection(client, this.#statements.get(client)!);
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Disconnected(error);
    }
  }

  /** Closes the connections once they are released. */
  close(): Promise<void> {
    return this.#pool.end();
  }

  /** Closes the connections at once. Their statements fail as if the server had closed them. */
  #abandon(): void {
    for (const client of this.#clients) {
      const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
      stream.destroy();
    }
  }
}

interface ServerClient extends pg.ClientBase {
  /** The host to which it connects. */
  readonly to: HostPort;
}

/** A client for the host that the server has when the client is created. Reports to the server if it cannot connect. */
function clientOf(options: PostgresOptions, server: Server, settings: Record<string, string>) {
  return class extends pg.Client implements ServerClient {
    readonly to: HostPort;

    constructor() {
      const to = server.host;
      super({
        ...clientConfig(options, to, settings),
        pipeline: true,
        types,
        lock_timeout: limits.lock_ms_max,
        idle_in_transaction_session_timeout: limits.silent_transaction_ms_max,
      });
      this.to = to;
    }

    override connect(): Promise<pg.Client>;
    override connect(callback: (error: Error) => void): void;
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
      if (callback === undefined) return super.connect();
      super.connect((error: Error | null) => {
        if (error) server.failed(error, this.to);
        callback(error as Error);
      });
      return undefined;
    }
  };
}
