/** A task with what cards and rows say beside it. */
import type { RunRecord, TaskRecord } from '../../api/queries.ts';

export interface ShownTask {
  task: TaskRecord;
  /** Null where tasks of one team are shown. */
  team_name: string | null;
  run: RunRecord | null;
  /** Questions of its run that wait for an answer. */
  waiting: number;
}

/** A move that the server refused. */
export interface Refusal {
  task_id: string;
  status: TaskRecord['status'];
  words: string;
}
