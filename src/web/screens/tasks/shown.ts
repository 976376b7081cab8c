/** A task with the facts that cards and rows show. */
import type { TeamRecord } from '../../api/queries.ts';
import type { WaitingItem } from '../../waiting/queue.ts';
import type { TaskRecord, TaskRunRecord } from './data.ts';

export interface ShownTask {
  task: TaskRecord;
  /** Null if only one team's tasks are shown. */
  team_name: string | null;
  run: TaskRunRecord | null;
  /** Ids of the members that work in its run; empty if unknown. */
  members: string;
  /** What waits for the user in its run; the longest wait first. */
  waiting: readonly WaitingItem[];
}

/** A move that the server rejected. */
export interface Refusal {
  task_id: string;
  status: TaskRecord['status'];
  message: string;
}

const MEMBERS_SHOWN = 3;

/**
 * The members that have steps, or all of them if the run was started without steps. A run keeps the definition that it was
 * started with, so the members of a run that is older than the team's definition are unknown.
 */
export function membersAtWork(
  { spec, updated_at }: Pick<TeamRecord, 'spec' | 'updated_at'>,
  run: Pick<TaskRunRecord, 'created_at'>,
): string {
  if (Date.parse(run.created_at) < Date.parse(updated_at)) return '';
  const takers = spec.steps.length > 0 ? spec.steps : spec.members;
  const ids = [...new Set(takers.map(({ member_id }) => member_id))];
  const more = ids.length - MEMBERS_SHOWN;
  return [...ids.slice(0, MEMBERS_SHOWN), ...(more > 0 ? [`+${more}`] : [])].join(' ');
}
