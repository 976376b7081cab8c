/** A task with the facts that cards and rows show. */
import type { RunRecord } from '../../api/queries.ts';
import type { TaskRecord } from './data.ts';

export interface ShownTask {
  task: TaskRecord;
  /** Null if only one team's tasks are shown. */
  team_name: string | null;
  run: RunRecord | null;
  /** The number of its run's pending reviews and elicitations. */
  waiting: number;
}

/** A move that the server rejected. */
export interface Refusal {
  task_id: string;
  status: TaskRecord['status'];
  message: string;
}
