/**
 * The database interface for all modules above. Only this module knows which database is used.
 *
 * Kysely builds the queries, and the store runs them. The body of a transaction is asynchronous, but it may wait only
 * for its own statements, because it holds the database meanwhile. A body that waits for anything else, such as a timer,
 * a file or another transaction, fails at once and is rolled back. A body must not continue after an error of a
 * statement: depending on the database, the transaction has ended, and the write fails with that error whatever the body
 * does. The store creates no ids and reads no clock.
 */
import type { Compilable, Kysely } from 'kysely';
import type { NumberedTable, SettledNumbers } from './settled-numbers.ts';
import type { Tables } from './tables.ts';
import type { WakeKeys, Wakes, WakeTopic } from './wakes.ts';

export interface Reader {
  /** Query builder. Run its queries with `all`, `get` or `run`, never with `.execute()`. */
  readonly sql: Kysely<Tables>;
  /** Identifies the database, as a key for per-database caches. */
  readonly database: object;
  all<Row>(query: Compilable<Row>): Promise<Row[]>;
  get<Row>(query: Compilable<Row>): Promise<Row | undefined>;
  /**
   * For many rows. Returns each as an array, in the order of the selected columns. In SQLite, a row of 8 columns takes 0.7 µs,
   * as an object 1.0 µs.
   */
  arrays(query: Compilable<unknown>): Promise<(readonly unknown[])[]>;
  /**
   * For many or large rows: calls `visit` with each row as an array of the selected columns, until it returns false.
   * `visit` cannot run other statements.
   */
  each(query: Compilable<unknown>, visit: (row: readonly unknown[]) => boolean): Promise<void>;
}

export interface Writer extends Reader {
  /** Runs a statement; returns how many rows it changed. */
  run(query: Compilable<unknown>): Promise<{ changes: number }>;
  /**
   * Runs a statement without waiting for it: on PostgreSQL, each wait is a round trip. `use` gets the rows that it returns, before
   * the commit. If the statement fails, a later one or the commit fails with its error.
   */
  queue<Row>(query: Compilable<Row>, use?: (rows: Row[]) => void): void;
  /** Runs a statement once for each set of parameters, which replace those of the query. For many rows. */
  runEach(query: Compilable<unknown>, sets: readonly (readonly unknown[])[]): Promise<void>;
}

export interface Tx extends Writer {
  /**
   * Tells the listeners of `Store.wakes` to read this key again, once this transaction is on disk; never after a rollback.
   * Null: all keys of the topic. A key that is woken several times is delivered once.
   */
  wake<T extends WakeTopic>(topic: T, key: WakeKeys[T] | null): void;
  /**
   * Calls `fn` once this transaction is on disk, in order of registration and before the listeners of wakes; never after a
   * rollback. No other process hears of it, so use it only for what concerns the caller's own process:
   *
   * - answering a caller that waits in this process, and ending its wait
   * - log lines and metrics about this transaction
   * - work that the process which made the change does, such as dispatching an intent or measuring a folder
   * - values in memory that the transaction has at hand, and that others would have to read from the database first:
   *   frames of events and of the fleet feed, runs, members of teams, nodes, settings
   *
   * Use `wake` if something has changed and others should look at it.
   */
  afterCommit(fn: () => void): void;
  /**
   * Calls `fn` once the body has succeeded, as a part of this transaction, for rows that continue a chain. Transactions
   * with the same `turn` follow one another from here to their commits. `last` reads what the previous one committed, but
   * perhaps none of the changes of this transaction. `fn` gets what it returns, and returns what it would find after that.
   */
  atEnd<T>(turn: string, last: (reader: Reader) => Promise<T>, fn: (found: T) => Promise<T>): void;
}

export interface WriteOptions {
  /**
   * `fn` reads the changes of all writes that have run a statement before, and those that begin later wait for it. For reads that
   * must not miss what depends on memory of this process. Rare, because it stops all other writes meanwhile.
   */
  alone?: boolean;
}

export interface Store {
  /**
   * Runs `fn` on committed rows, on a read-only connection, as one snapshot. It may run again. Throws `ForeignWait` if
   * `fn` waits for anything but its own statements.
   */
  read<T>(fn: (reader: Reader) => Promise<T> | T): Promise<T>;
  /**
   * Like `read`, but may return what `fn` returned for this key before, if nothing was committed since. Then it returns
   * no promise. The value must depend on the database only.
   */
  cachedRead<T>(key: string, fn: (reader: Reader) => Promise<T> | T): Promise<T> | T;
  /**
   * Runs `fn` as if no other `fn` ran at the same time. If `fn` throws, only its own changes are rolled back. It may run
   * again, so it must have no side effects except through `tx`. Resolves when the changes are on disk. Throws the problem
   * `unavailable` if it is not known whether they are. Throws `ForeignWait` if `fn` waits for anything but its own statements.
   */
  write<T>(fn: (tx: Tx) => Promise<T> | T, options?: WriteOptions): Promise<T>;
  /**
   * Which numbers of a table are settled now. Call it before the transaction that reads the rows, not in its body. See
   * `settled-numbers.ts`.
   */
  settledNumbers(table: NumberedTable): Promise<SettledNumbers>;
  /** Stores a batch of output: its events and the new committed offset. Throws `StaleBatch`. */
  ingest(batch: IngestBatch): Promise<Appended>;
  /** Calls `listener` with every committed batch, in commit order. Returns a function that unsubscribes. */
  onIngested(listener: (batch: IngestBatch, appended: Appended) => void): () => void;
  /** What transactions wake. */
  readonly wakes: Wakes;
  /** Where the data is. */
  readonly source: StoreSource;
  /** Null if the database is in files. */
  readonly server: ServerUse | null;
  /** Null if the database is on a server, which takes care of its files itself. */
  readonly files: DatabaseFiles | null;
  /** Finishes queued writes, then closes the database. Later writes are rejected. Idempotent. */
  close(): Promise<void>;
}

/** What happened to transactions since a store was opened. */
export interface ServerCounts {
  /** Transactions that were begun, each counted once even if it ran again. */
  transactions: number;
  /** Calls of `write`. Several may share a transaction. */
  writes: number;
  /** Writes that ran again because they conflicted with others. */
  conflicts: number;
  /** Reads and writes that ran again because the connection was lost or could not be opened. */
  lost: number;
  /** Commits whose outcome remained unknown. */
  unknown_commits: number;
}

/** How a store uses its server. */
export interface ServerUse extends ServerCounts {
  /** Whether the server answered last. It is asked every second. */
  up(): boolean;
  /** How many connections are open, and how many transactions wait for one. */
  connections(): { open: number; waiting: number };
}

/** False while the server of the database does not answer: queries wait then, and fail after some seconds. */
export function databaseAnswers({ server }: Pick<Store, 'server'>): boolean {
  return server?.up() ?? true;
}

/** The files of a database that svc takes care of itself. */
export interface DatabaseFiles {
  /** Returns up to `pages_max` free pages to the file system. Resolves to the number of remaining free pages. */
  vacuum(pages_max: number): Promise<number>;
  readonly path: string;
  /**
   * Whether the integrity check was skipped when the store was opened. It runs only for small databases after an
   * unclean stop.
   */
  readonly unchecked: boolean;
  /** Writes a consistent copy of the live database to a new file. */
  backup(path: string): Promise<void>;
  /** Runs `quick_check` and returns the problems; empty if the database is intact. */
  check(): Promise<string[]>;
}

/**
 * The location of a store's data, which can be sent to a worker: pass it to `openReader` there. It may contain a
 * password, so never log it.
 */
export type StoreSource =
  | { kind: 'sqlite'; path: string }
  // `history`: see `postgres/history.ts`.
  | ({ kind: 'postgres'; history: string } & PostgresServer);

/** A database on a server, and how to connect to it. */
export interface PostgresServer {
  /** `postgres://user:password@host:port/database`, with several hosts, or `?host=/folder` for a socket. See `parseDatabaseUrl`. */
  url: string;
  /** Certificates (PEM) that the server's certificate is verified with. Absent: those of well-known authorities. */
  ca?: string | undefined;
  /** Transactions run again until this long after the connection was lost. Absent: `limits.lost_ms_max`. */
  lost_ms_max?: number | undefined;
}

/** Reads a store's data, for example in a worker. */
export interface StoreReader extends Pick<Store, 'read' | 'source'> {
  close(): Promise<void>;
}

/** Thrown for a batch that does not begin at the committed offset. None of it was stored. */
export class StaleBatch extends Error {
  constructor() {
    super('stale ingest batch');
    this.name = 'StaleBatch';
  }
}

/** Thrown if the body of a transaction waits for anything but its own statements. The body was rolled back. */
export class ForeignWait extends Error {
  /** `body` is the source text of the body, and `statement` the last one that it ran. */
  constructor(body: string, statement: string | null) {
    const last = statement === null ? 'before its first statement' : `after the statement: ${statement}`;
    super(`a transaction waits for something other than its own statements, ${last}; its body: ${body}`);
    this.name = 'ForeignWait';
  }
}

/** Thrown if a transaction is used after its body has ended or failed. */
export class TransactionEnded extends Error {
  constructor() {
    super('the transaction has ended; await each of its statements in its body');
    this.name = 'TransactionEnded';
  }
}

/** Thrown if the body of a transaction starts another transaction on the same store. */
export class NestedTransaction extends Error {
  constructor() {
    super('the body of a transaction must not start another transaction');
    this.name = 'NestedTransaction';
  }
}

/** Thrown if the database cannot be trusted. The message says what is wrong and what to do. */
export class StoreDamaged extends Error {
  constructor(path: string, found: string) {
    // SQLite reports it in several lines.
    const line = found.replaceAll(/\s+/g, ' ');
    super(`database ${path} is damaged: ${line}; restore a backup with svc restore FILE`);
    this.name = 'StoreDamaged';
  }
}

export interface IngestBatch {
  agent_id: string;
  session_id: string;
  stream: 'stdout' | 'stderr';
  /** Must be the committed offset; otherwise the batch is rejected (`stale ingest batch`). */
  from: number;
  to: number;
  /** The last ≤ 64 bytes before `to`. They are compared before reading continues. */
  tail: Uint8Array;
  ts_ms: number;
  /** The output to store. It has the length of the bytes read, unless secrets were redacted. */
  bytes: Uint8Array;
  /** The position in the stream's output before this batch. Equal to `from` unless something was redacted. */
  output_from?: number;
  /** Where each event ends in `bytes` (exclusive, ascending; the last one is `bytes.length`). */
  ends: readonly number[];
  /** Per event: whether the line continues in the next one. */
  partial: readonly boolean[];
  /** Per event: whether its bytes are valid UTF-8. Determined when the bytes are split, and not checked again. */
  is_text: readonly boolean[];
}

/** The events of a committed batch. */
export interface Appended {
  agent_id: string;
  agent_num: number;
  first_seq: number;
  last_seq: number;
  /** The bytes that the events add to the size of the log. */
  bytes: number;
}
