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
  all<Row>(query: Compilable<Row>): Row[];
  get<Row>(query: Compilable<Row>): Row | undefined;
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
  /** A consistent copy of the live database in a new file. */
  backup(path: string): Promise<void>;
  /** Runs `quick_check`; answers the problems found, none when it is sound. */
  check(): Promise<string[]>;
  close(): Promise<void>;
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
  /** Where each event ends in `bytes` (exclusive, ascending; the last one is `bytes.length`). */
  bytes: Uint8Array;
  ends: readonly number[];
  /** Per event: the line goes on in the next one. */
  partial: readonly boolean[];
}

export interface Appended {
  agent_id: string;
  first_seq: number;
  last_seq: number;
}
