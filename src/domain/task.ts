/** What a team is asked to do: by a person's word, and as far as its runs get with it. */
import type { RunStatus } from './run.ts';

export const taskStatuses = ['open', 'in_progress', 'in_review', 'completed', 'cancelled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

export interface Task {
  id: string;
  /** Counts the team's tasks. */
  number: number;
  team_id: string;
  title: string;
  description: string;
  status: TaskStatus;
  assignee_member_id: string | null;
  conversation_id: string;
  /** Its newest run. */
  run_id: string | null;
  version: number;
  /** A user's id. */
  created_by: string;
  created_at: string;
  updated_at: string;
}

/**
 * The status of a task once a run of it is as given. A run that begins takes the task up whatever it was; one that ends moves
 * only what is still in progress, so that what a person said meanwhile stays. What completed is still to be looked at.
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
