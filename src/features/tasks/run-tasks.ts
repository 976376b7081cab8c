/** Creates the task of a run that is created without one. */
import { newId } from '../../base/ids.ts';
import type { Tx } from '../../store/store.ts';
import { insertTask } from './queries/tasks.ts';

/** Inserts a task with the status `in_progress`. Returns its num. `now`: Unix ms. */
export function createTask(
  tx: Tx,
  { now, ...task }: { team_num: number; title: string; created_by: string; now: number },
): number {
  return insertTask(tx, {
    ...task,
    id: newId('task'),
    description: '',
    status: 'in_progress',
    conversation_id: newId('conv'),
    version: 1,
    created_at: now,
    updated_at: now,
  });
}
