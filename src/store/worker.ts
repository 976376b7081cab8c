/** The store's second thread, on connections of its own: checkpoints and integrity checks, which would stall the loop. */

import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { limits } from '../base/limits.ts';
import { quickCheck } from './integrity.ts';

export interface WorkerTask {
  id: number;
  kind: 'checkpoint' | 'check';
}
export interface WorkerAnswer {
  id: number;
  /** Problems of a check; empty otherwise. */
  problems: string[];
  error?: string;
}

const { path } = workerData as { path: string };
const port = parentPort!;

port.on('message', (task: WorkerTask) => {
  try {
    port.postMessage({ id: task.id, problems: perform(task.kind) } satisfies WorkerAnswer);
  } catch (error) {
    port.postMessage({ id: task.id, problems: [], error: String(error) } satisfies WorkerAnswer);
  }
});

function perform(kind: WorkerTask['kind']): string[] {
  const db = new DatabaseSync(path, { timeout: limits.database_busy_ms, readOnly: kind === 'check' });
  try {
    if (kind === 'check') return quickCheck(db);
    // Passive: never waits for the writer, and the writer never for it.
    db.exec('PRAGMA wal_checkpoint(PASSIVE)');
    return [];
  } finally {
    db.close();
  }
}
