/**
 * Reads from a snapshot that is kept until it is released, so that reads between two commits share one. While a snapshot
 * is held, all reads see its state, whatever is committed in the meantime.
 */
import { Memos } from './body.ts';
import type { Connection } from './connection.ts';
import type { Reader } from './store.ts';
import { ReadTransaction } from './transaction.ts';

export class SnapshotReader {
  readonly connection: Connection;
  /** Values that bodies computed from the current snapshot. */
  readonly #memos = new Memos();
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
      const value = await new ReadTransaction(this.connection, this.#memos).execute(fn);
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
    this.#memos.clear();
    this.connection.statement('BEGIN').run();
    this.#kept = true;
  }

  #release(): void {
    this.#kept = false;
    this.#pinned = false;
    if (this.connection.db.isTransaction) this.connection.statement('COMMIT').run();
  }
}
