/**
 * When the write-ahead log is copied back: in the worker, every some MiB, beside the writing. SQLite begins the log anew
 * only when all of it is copied, which never happens beside a writer that does not pause; so above a bound the writer
 * waits (the event loop does not) for the little that is left.
 */
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import type { WorkerCalls } from '../base/worker-calls.ts';
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

  grew(bytes: number): void {
    this.#since_bytes += bytes;
    this.#log_bytes += bytes;
  }

  /** Begins a checkpoint when it is time for one; what it answers is to be awaited before the next group. */
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
      // Tried again after the next bytes; SQLite does it itself when the log grows far beyond the bound.
      this.#log_bytes = 0;
      if (!this.#closed) this.#log.warn({ err: error }, 'the write-ahead log could not be copied back');
    } finally {
      this.#running = null;
    }
  }
}
