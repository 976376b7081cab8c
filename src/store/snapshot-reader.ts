/**
 * Reads from a snapshot that is kept until it is released, so that reads between two commits share one. While a snapshot
 * is held, all reads see its state, whatever is committed in the meantime.
 */
import type { Connection } from './connection.ts';
import { limits } from './limits.ts';
import type { Reader } from './store.ts';
import { ReadTransaction } from './transaction.ts';

export class SnapshotReader {
  readonly connection: Connection;
  /** Values that bodies returned from the current snapshot, by key. */
  #cached = new Map<string, unknown>();
  #kept = false;
  #pinned = false;
  /** Bodies that have not ended. Their snapshot must not be released. */
  #running = 0;
  #idle: (() => void)[] = [];

  constructor(connection: Connection) {
    this.connection = connection;
  }

  /** Throws what `fn` throws, or `ForeignWait`. */
  async read<T>(fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    if (!this.#kept) this.#begin();
    this.#running++;
    let failed = true;
    try {
      const value = await new ReadTransaction(this.connection).execute(fn);
      failed = false;
      return value;
    } finally {
      this.#running--;
      if (this.#running === 0) {
        if (failed && !this.#pinned) this.#release();
        for (const resolve of this.#idle.splice(0)) resolve();
      }
    }
  }

  /** What `cachedRead` of the current snapshot returned for this key, unless it was forgotten; otherwise undefined. */
  cached<T>(key: string): T | undefined {
    return this.#kept ? (this.#cached.get(key) as T | undefined) : undefined;
  }

  /** Like `read`. A later `cached` returns the value. */
  cachedRead<T>(key: string, fn: (reader: Reader) => Promise<T> | T): Promise<T> {
    return this.read(async (reader) => {
      // If `fn` fails with `ForeignWait` and ends later, the next snapshot has a map of its own.
      const cached = this.#cached;
      const value = await fn(reader);
      if (cached.size >= limits.cached_reads_max) cached.clear();
      cached.set(key, value);
      return value;
    });
  }

  /** Waits for the reads that are running. Then takes a new snapshot and holds it, even if a read fails. */
  async pin(): Promise<void> {
    while (this.#running > 0) await this.#untilIdle();
    // A snapshot from before a checkpoint would prevent the log from restarting.
    this.#release();
    this.#begin();
    // A snapshot begins with the first read.
    this.connection.statement('SELECT count(*) FROM meta WHERE key = 0').get();
    this.#pinned = true;
  }

  /** Waits for the reads that are running. Then releases the snapshot: the next read sees everything committed. */
  async release(): Promise<void> {
    while (this.#running > 0) await this.#untilIdle();
    this.#release();
  }

  close(): void {
    this.connection.close();
  }

  /** When it resolves, another read may have begun. */
  #untilIdle(): Promise<void> {
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #begin(): void {
    this.#cached = new Map();
    this.connection.statement('BEGIN').run();
    this.#kept = true;
  }

  #release(): void {
    this.#kept = false;
    this.#pinned = false;
    if (this.connection.db.isTransaction) this.connection.statement('COMMIT').run();
  }
}
