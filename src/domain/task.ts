/** What a team is asked to do, and what is said about it. */
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

export const messageRoutes = ['broadcast', 'to_leader', 'to_member'] as const;
export type MessageRoute = (typeof messageRoutes)[number];
