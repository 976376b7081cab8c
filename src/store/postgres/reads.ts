/** Reads of PostgreSQL, each with a snapshot of its own. */
import { silentLog } from '../../base/log.ts';
import { type Caller, callerOf, checkNotInBody } from '../body.ts';
import type { PostgresServer, Reader, ServerCounts, StoreReader } from '../store.ts';
import { ConnectionPool, type PoolOptions } from './connection.ts';
import { limits } from './limits.ts';
import { Server } from './server.ts';
import { ReadTransaction } from './transaction.ts';
import { lostMsMax, noCounts, untilDone } from './writes.ts';

const OPENING = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

export class Reads {
  readonly #database: object;
  readonly #pool: ConnectionPool;
  readonly #lost_ms_max: number;
  readonly #counts: ServerCounts;

  /** `database` identifies the store. */
  constructor(database: object, pool: PoolOptions, counts: ServerCounts) {
    this.#database = database;
    this.#counts = counts;
    this.#pool = new ConnectionPool(pool);
    this.#lost_ms_max = lostMsMax(pool.options);
  }

  /** Resolves to what `fn` returned. It runs again if the connection is lost. `caller` is named in errors. */
  run<T>(fn: (reader: Reader) => Promise<T> | T, caller: Caller): Promise<T> {
    return untilDone(this.#lost_ms_max, this.#counts, () => this.once(fn, caller));
  }

  /** Like `run`, but throws `Disconnected` if the connection is lost. */
  async once<T>(fn: (reader: Reader) => Promise<T> | T, caller?: Caller): Promise<T> {
    const connection = await this.#pool.acquire();
    const tx = new ReadTransaction(this.#database, connection, OPENING);
    try {
      return await tx.execute(fn, caller);
    } finally {
      tx.finish();
      connection.release();
    }
  }

  get connections(): ConnectionPool['use'] {
    return this.#pool.use;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** Opens a reader for another thread, which reads only from a server with this history. It connects when it is used. */
export function openPostgresReader(source: PostgresServer & { history: string }): StoreReader {
  const database = {};
  const checkHistory = (history: string) => {
    if (history !== source.history) throw new Error('PostgreSQL has failed over');
  };
  // The store's thread reports and counts lost connections.
  const options = { ...source, log: silentLog };
  const pool = { options, server: new Server(options), size: limits.worker_readers_max, checkHistory };
  const reads = new Reads(database, pool, noCounts());
  const read = async <T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> => {
    checkNotInBody(database);
    return reads.run(fn, callerOf(read));
  };
  return { source: { kind: 'postgres', ...source }, read, close: () => reads.close() };
}
