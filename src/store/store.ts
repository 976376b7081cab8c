/**
 * The database, as every room above sees it. Nothing else knows which database it is.
 *
 * Kysely builds the queries, the store runs them: on SQLite a transaction's body is synchronous, so `Reader` and `Tx`
 * take built queries instead of being awaited. The store invents no ids and reads no clock.
 */
import type { Compilable, Kysely } from 'kysely';
import type { Tables } from './tables.ts';

export interface Reader {
  /** Query builder; execute what it builds with `all`, `get` or `run`, never with `.execute()`. */
  readonly sql: Kysely<Tables>;
  /** Another one for another database: what is remembered of one is kept by it. */
  readonly database: object;
  all<Row>(query: Compilable<Row>): Row[];
  get<Row>(query: Compilable<Row>): Row | undefined;
  /** For many rows: each as an array, in the order of the selected columns. Much faster than objects. */
  arrays(query: Compilable<unknown>): (readonly unknown[])[];
  /** For many or large rows: each as an array, in the order of the selected columns, until `visit` answers false. */
  each(query: Compilable<unknown>, visit: (row: readonly unknown[]) => boolean): void;
}

export interface Tx extends Reader {
  run(query: Compilable<unknown>): { changes: number };
  /** Called once this transaction's group is on the disk, in order of registration; never after a rollback. */
  afterCommit(fn: () => void): void;
}

export interface Store {
  /** Runs `fn` on committed rows only, on a read-only connection, as one snapshot. */
  read<T>(fn: (reader: Reader) => T): Promise<T>;
  /**
   * Runs `fn` whole, inside a savepoint of the current group; a throw undoes only this `fn`. `fn` may run again when the
   * group fails, so it must have no effects but through `tx`. Resolves after the group's fsync.
   */
  write<T>(fn: (tx: Tx) => T): Promise<T>;
  /** The byte path: `bytes became these events` and `the offset is now k`, in the current group. */
  ingest(batch: IngestBatch): Promise<Appended>;
  /** Hears of every committed batch, in the order of the commits; answers how to stop hearing. */
  onIngested(listener: (batch: IngestBatch, appended: Appended) => void): () => void;
  /** Gives up to `pages_max` free pages back to the file system; answers how many free ones are left. */
  vacuum(pages_max: number): Promise<number>;
  /** For `openReader` in a worker. */
  readonly source: StoreSource;
  /** Not checked while opening: that is done only for small ones after an unclean stop. Call `check` in the background. */
  readonly unchecked: boolean;
  /** A consistent copy of the live database in a new file. */
  backup(path: string): Promise<void>;
  /** Runs `quick_check`; answers the problems found, none when it is sound. */
  check(): Promise<string[]>;
  close(): Promise<void>;
}

/** Where a store's data is; can be sent to a worker. */
export interface StoreSource {
  kind: 'sqlite';
  path: string;
}

/** A batch that does not begin at the committed offset; nothing of it was stored. */
export class StaleBatch extends Error {
  constructor() {
    super('stale ingest batch');
    this.name = 'StaleBatch';
  }
}

/** The database cannot be trusted. The message says what was found and what to do. */
export class StoreDamaged extends Error {
  constructor(path: string, found: string) {
    // SQLite says it over several lines.
    const line = found.replaceAll(/\s+/g, ' ');
    super(`database ${path} is damaged: ${line}; restore a backup with svc restore FILE`);
    this.name = 'StoreDamaged';
  }
}

export interface IngestBatch {
  agent_id: string;
  session_id: string;
  stream: 'stdout' | 'stderr';
  /** Offset that must be the committed one, else the batch is refused (`stale ingest batch`). */
  from: number;
  to: number;
  /** The last ≤ 64 bytes before `to`, compared before reading on. */
  tail: Uint8Array;
  ts_ms: number;
  /** What is shown of the bytes; as long as they are, but for secrets that were taken out. */
  bytes: Uint8Array;
  /** How much output there was of the stream before; `from`, unless something was taken out. */
  output_from?: number;
  /** Where each event ends in `bytes` (exclusive, ascending; the last one is `bytes.length`). */
  ends: readonly number[];
  /** Per event: the line goes on in the next one. */
  partial: readonly boolean[];
}

export interface Appended {
  agent_id: string;
  agent_num: number;
  first_seq: number;
  last_seq: number;
}
