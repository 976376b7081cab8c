/**
 * Decides when to checkpoint the write-ahead log: every few MiB, in the worker and in parallel with writes. SQLite
 * restarts the log only when all of it has been copied, which never happens while the writer keeps writing. So above a
 * limit, the writer (but not the event loop) waits until the small remainder is copied.
 */

import type { Logger } from '../base/log.ts';
import type { WorkerCalls } from '../base/worker-calls.ts';
import { limits } from './limits.ts';
import type { StoreTasks } from './worker.ts';

export class Checkpoints {
  readonly #worker: WorkerCalls<StoreTasks>;
  readonly #log: Logger;
  #since_bytes = 0;
  #log_bytes = 0;
  #running: Promise<void> | null = null;
  #closed = false;

  constructor(worker: WorkerCalls<StoreTasks>, log: Logger) {
    this.#worker = worker;
    this.#log = log;
  }

  /** Records that a group wrote `bytes` to the log. */
  grew(bytes: number): void {
    this.#since_bytes += bytes;
    this.#log_bytes += bytes;
  }

  /** Starts a checkpoint if one is due. If it returns a promise, the caller must await it before the next group. */
  afterGroup(): Promise<void> | null {
    if (this.#since_bytes < limits.wal_checkpoint_bytes || this.#closed) return null;
    this.#running ??= this.#run();
    return this.#log_bytes < limits.wal_kept_bytes_max ? null : this.#running.then(() => this.#run());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    this.#since_bytes = 0;
    try {
      const { log_bytes, all } = await this.#worker.call('checkpoint', null);
      this.#log_bytes = all && this.#since_bytes === 0 ? 0 : log_bytes;
    } catch (error) {
      // A later write starts another checkpoint. If the log grows far beyond the limit, SQLite itself runs one.
      this.#log_bytes = 0;
      if (!this.#closed) this.#log.warn({ err: error }, 'cannot checkpoint the write-ahead log');
    } finally {
      this.#running = null;
    }
  }
}
