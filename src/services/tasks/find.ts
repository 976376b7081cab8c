/** Finding tasks and conversations for those who may; and how a task that changed is told. */
import type { Action } from '../../domain/policy.ts';
import { problems } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import type { Feed } from '../../events/feed.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { findTask, type TaskRow, taskOfConversation, taskOfNum, toTask } from '../../store/tasks.ts';
import { type TeamRow, teamOfNum } from '../../store/teams.ts';
import { mustFindTeam } from '../teams/access.ts';

/** A task with its team. */
export interface TeamTask {
  team: TeamRow;
  task: TaskRow;
}

/** A task by its own id, or by that of its conversation. */
export type TaskRef = { team_id: string } & ({ task_id: string } | { conversation_id: string });

export function mustFindTask(reader: Reader, caller: Caller, action: Action, ref: TaskRef): TeamTask {
  const team = mustFindTeam(reader, caller, action, ref.team_id);
  const [task, problem] =
    'task_id' in ref
      ? [findTask(reader, ref.task_id), problems.taskNotFound]
      : [taskOfConversation(reader, ref.conversation_id), problems.conversationNotFound];
  if (!task || task.team_num !== team.num) throw problem();
  return { team, task };
}

/** Tells the fleet stream what the task is now. Call it last in a transaction. */
export function publishTask(feed: Feed, tx: Tx, task_num: number): TaskRow {
  const task = taskOfNum(tx, task_num)!;
  feed.append(tx, 'task', teamOfNum(tx, task.team_num)!.created_by, { ...toTask(task) }, task.team_num);
  return task;
}
