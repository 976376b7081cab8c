/** Syncs the write-ahead log on the thread pool. fsync applies to the whole file, so it covers SQLite's writes. */
import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';

const sync = promisify(fdatasync);

export class WalSync {
  readonly #file: number;

  /** Requires that the log exists, which is the case from the first read until the last connection closes. */
  constructor(database_path: string) {
    this.#file = openSync(`${database_path}-wal`, 'r+');
  }

  /** Resolves when all writes so far are on disk. */
  sync(): Promise<void> {
    return sync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}
