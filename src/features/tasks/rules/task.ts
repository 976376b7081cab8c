/** A task of a team: created by a person, with a status that people and runs change. */
import type { RunStatus } from '../../runs/rules/run.ts';

export const taskStatuses = ['open', 'in_progress', 'in_review', 'completed', 'cancelled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

export interface Task {
  id: string;
  /** Sequential number within the team. */
  number: number;
  /** The team's key and the number: `DEM-1`. It changes with the team's key. */
  key: string;
  team_id: string;
  title: string;
  description: string;
  status: TaskStatus;
  assignee_member_id: string | null;
  conversation_id: string;
  /** Its newest run. */
  run_id: string | null;
  /** The steps of its newest run. */
  run_steps: { completed: number; total: number };
  version: number;
  /** A user's id. */
  created_by: string;
  created_at: string;
  updated_at: string;
}

/**
 * The status of a task after a change of its run. A run that starts sets it to `in_progress`, whatever it was. A run
 * that ends changes only `in_progress`, so that a status set by a person meanwhile stays. A completed run leaves the
 * task `in_review`.
 */
export function followRun(status: TaskStatus, run: RunStatus): TaskStatus {
  switch (run) {
    case 'pending':
    case 'running':
    case 'input_required':
      return 'in_progress';
    case 'completed':
      return status === 'in_progress' ? 'in_review' : status;
    case 'failed':
    case 'cancelled':
      return status === 'in_progress' ? 'open' : status;
  }
}
