/**
 * The PostgreSQL implementation of `Store`. Bodies of writes run at the same time on several connections, as
 * serializable transactions, and run again if they conflict. So they take effect as if one ran after the other. Reads
 * have one snapshot each. Nothing is visible before it is on the server's disk.
 */
import { sql } from 'kysely';
import { callerOf, checkNotInBody } from '../body.ts';
import type { NumberedTable, SettledNumbers } from '../settled-numbers.ts';
import type {
  Appended,
  IngestBatch,
  Reader,
  ServerUse,
  Store,
  StoreSource,
  Tx,
  WriteOptions,
} from '../store.ts';
import { LocalWakes } from '../wakes.ts';
import { Claim } from './claim.ts';
import { ConnectionPool, type PostgresOptions } from './connection.ts';
import { Disconnected, isDiskFull, storageProblem } from './errors.ts';
import { Ingest } from './ingest.ts';
import { limits } from './limits.ts';
import { Reads } from './reads.ts';
import { settledArguments } from './schema/numbers.ts';
import { Server } from './server.ts';
import { SharedWrites } from './shared-writes.ts';
import { noCounts, Writes } from './writes.ts';

/**
 * Connects to the database, claims it for this plane, and creates or upgrades its schema. Throws the problem
 * `database_in_use` if another plane has it, `database_unreachable`, `DatabaseTooNew` or `UnsupportedDatabase`.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const server = new Server(options);
  return new PostgresStore(options, server, await Claim.acquire(options, server));
}

class PostgresStore implements Store {
  readonly source: StoreSource;
  readonly files = null;
  readonly server: ServerUse = {
    ...noCounts(),
    up: () => this.#server.up,
    connections: () => {
      const [reads, writes] = [this.#reads.connections, this.#writers.use];
      const waiting = reads.waiting + writes.waiting + this.#shared.waiting;
      return { open: reads.open + writes.open, waiting };
    },
  };
  readonly wakes: LocalWakes;
  readonly #options: PostgresOptions;
  readonly #server: Server;
  readonly #claim: Claim;
  /** Identifies the store. */
  readonly #database = {};
  readonly #reads: Reads;
  readonly #writers: ConnectionPool;
  readonly #writes: Writes;
  readonly #shared: SharedWrites;
  readonly #ingest: Ingest;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;

  constructor(options: PostgresOptions, server: Server, claim: Claim) {
    this.#options = options;
    this.#server = server;
    this.#claim = claim;
    this.wakes = new LocalWakes(options.log);
    const { url, ca, lost_ms_max } = options;
    this.source = { kind: 'postgres', url, ca, lost_ms_max, history: claim.history };
    const connections = options.connections ?? limits.connections;
    const checkHistory = (history: string) => claim.checkHistory(history);
    const pool = { options, server, checkHistory };
    this.#reads = new Reads(this.#database, { ...pool, size: Math.floor(connections / 2) }, this.server);
    // A scan of a whole table would conflict with every change of the table.
    const settings = { enable_seqscan: 'off' };
    this.#writers = new ConnectionPool({ ...pool, size: Math.ceil(connections / 2), settings });
    const writes = {
      database: this.#database,
      pool: this.#writers,
      claim,
      reads: this.#reads,
      counts: this.server,
      wakes: this.wakes,
      options,
    };
    this.#writes = new Writes(writes);
    this.#shared = new SharedWrites(this.#writes, this.server);
    this.#ingest = new Ingest(this.#writes);
  }

  read<T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    const caller = callerOf(this.read);
    return this.#run(() => this.#reads.run(fn, caller));
  }

  cachedRead<T>(_key: string, fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    // Nothing is kept: another plane may have committed.
    return this.read(fn);
  }

  async settledNumbers(table: NumberedTable): Promise<SettledNumbers> {
    const { tag, sequence } = settledArguments(table);
    const settled = sql<{ up_to: number; is_open: number }>`settled_numbers(${tag}, ${sequence})`;
    const { up_to, is_open } = (await this.read((reader) =>
      reader.get(reader.sql.selectFrom(settled.as('settled')).selectAll()),
    ))!;
    return { up_to, open: is_open === 1 };
  }

  write<T>(fn: (tx: Tx) => Promise<T> | T, { alone = false }: WriteOptions = {}): Promise<T> {
    const caller = callerOf(this.write);
    const work = { body: fn, caller };
    this.server.writes++;
    return this.#run(() =>
      alone ? this.#writes.run({ isolation: 'SERIALIZABLE', ...work, alone }) : this.#shared.run(work),
    );
  }

  ingest(batch: IngestBatch): Promise<Appended> {
    return this.#run(() => this.#ingest.store(batch));
  }

  onIngested(listener: (batch: IngestBatch, appended: Appended) => void): () => void {
    return this.#ingest.onIngested(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // First, because running writes may wait for the outcome of a lost commit.
    this.#writes.close();
    await Promise.allSettled(this.#running);
    await Promise.all([this.#reads.close(), this.#writers.close()]);
    await this.#claim.close();
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    checkNotInBody(this.#database);
    if (this.#closing !== null) throw new Error('the store is closed');
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } catch (error) {
      throw this.#toProblem(error);
    } finally {
      this.#running.delete(running);
    }
  }

  #toProblem(error: unknown): unknown {
    const problem = storageProblem(error);
    if (!problem) return error;
    // The beginning of an outage was logged.
    const is_known = error instanceof Disconnected && !this.#server.up;
    if (isDiskFull(error)) this.#server.isFull(error);
    else if (!is_known) this.#options.log.error({ err: error }, problem.message);
    return problem;
  }
}
