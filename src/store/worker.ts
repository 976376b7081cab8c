/**
 * The store's worker thread, with its own connections: checkpoints and integrity checks, which would block the loop.
 */
import { DatabaseSync } from 'node:sqlite';
import { workerData } from 'node:worker_threads';
import { serveCalls } from '../base/worker-calls.ts';
import { quickCheck } from './integrity.ts';
import { limits } from './limits.ts';

const { path } = workerData as { path: string };

const tasks = {
  /** Passive: neither the checkpoint nor the writer waits for the other. */
  checkpoint: (_: null) =>
    withDatabase(false, (db) => {
      const { log, checkpointed } = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as Record<
        string,
        number
      >;
      return { log_bytes: log! * limits.database_page_bytes, all: log === checkpointed };
    }),
  check: (_: null) => withDatabase(true, quickCheck),
};
export type StoreTasks = typeof tasks;

function withDatabase<T>(readOnly: boolean, fn: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { timeout: limits.database_busy_ms, readOnly });
  try {
    return fn(db);
  } finally {
    db.close();
  }
}

serveCalls(tasks);
