/** Syncs the write-ahead log on the thread pool. A sync is of the file, whoever wrote it, so this one covers SQLite's writes. */
import { closeSync, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';

const sync = promisify(fdatasync);

export class WalSync {
  readonly #path: string;
  #file: number | null = null;

  constructor(database_path: string) {
    this.#path = `${database_path}-wal`;
  }

  /** Resolves when every write so far is on the disk. The file exists from the first write to the last close. */
  sync(): Promise<void> {
    this.#file ??= openSync(this.#path, 'r+');
    return sync(this.#file);
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}
