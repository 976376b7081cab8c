/** Stores batches of output. Batches that wait share one transaction, in the order of the calls. */
import { type BatchOutcome, writeBatch } from '../event-rows/write-postgres.ts';
import { limits } from '../limits.ts';
import type { Appended, IngestBatch } from '../store.ts';
import type { WriteTransaction } from './transaction.ts';
import type { Writes } from './writes.ts';

interface QueuedBatch {
  batch: IngestBatch;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}

export class Ingest {
  readonly #writes: Writes;
  readonly #listeners = new Set<(batch: IngestBatch, appended: Appended) => void>();
  #queue: QueuedBatch[] = [];
  #running = false;

  constructor(writes: Writes) {
    this.#writes = writes;
  }

  /** Throws `StaleBatch` if the batch does not begin at the committed offset, or `session not found`. */
  store(batch: IngestBatch): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ batch, resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  onIngested(listener: (batch: IngestBatch, appended: Appended) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      const group = this.#nextGroup();
      try {
        const outcomes = await this.#commit(group.map(({ batch }) => batch));
        outcomes.forEach((outcome, i) => {
          if ('error' in outcome) group[i]!.reject(outcome.error);
          else group[i]!.resolve(outcome.appended);
        });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#running = false;
  }

  #nextGroup(): QueuedBatch[] {
    let bytes = 0;
    let length = 0;
    for (const { batch } of this.#queue) {
      if (length > 0 && bytes + batch.bytes.length > limits.group_bytes_max) break;
      bytes += batch.bytes.length;
      length++;
    }
    return this.#queue.splice(0, length);
  }

  #commit(batches: readonly IngestBatch[]): Promise<BatchOutcome[]> {
    const body = async (tx: WriteTransaction) => {
      const outcomes = await Promise.all(batches.map((batch) => writeBatch(tx, batch)));
      tx.afterCommit(() => this.#report(batches, outcomes));
      return outcomes;
    };
    // Each statement must see the newest committed offset. It does not depend on anything else that it reads.
    return this.#writes.run({ isolation: 'READ COMMITTED', body });
  }

  #report(batches: readonly IngestBatch[], outcomes: readonly BatchOutcome[]): void {
    outcomes.forEach((outcome, i) => {
      if ('error' in outcome) return;
      for (const listener of this.#listeners) listener(batches[i]!, outcome.appended);
    });
  }
}
