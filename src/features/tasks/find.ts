/** Finds tasks and their threads for callers with access, and publishes changed tasks. */
import type { Action } from '../../core/policy.ts';
import { problems } from '../../core/problem.ts';
import type { Feed } from '../../events/feed.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { requireTeam } from '../teams/access.ts';
import { type TeamRow, teamOfNum } from '../teams/queries.ts';
import { findTask, type TaskRow, taskOfConversation, taskOfNum, toTask } from './queries/tasks.ts';

/** A task with its team. */
export interface TeamTask {
  team: TeamRow;
  task: TaskRow;
}

/** Finds a task by its own id, or by the id of its thread. */
export type TaskRef = { team_id: string } & ({ task_id: string } | { conversation_id: string });

/** Throws `team not found`, and `task not found` or `conversation not found`, also for a task of another team. */
export async function requireTask(
  reader: Reader,
  caller: Caller,
  action: Action,
  ref: TaskRef,
): Promise<TeamTask> {
  const team = await requireTeam(reader, caller, action, ref.team_id);
  const [task, problem] =
    'task_id' in ref
      ? [await findTask(reader, ref.task_id), problems.taskNotFound]
      : [await taskOfConversation(reader, ref.conversation_id), problems.conversationNotFound];
  if (!task || task.team_num !== team.num) throw problem();
  return { team, task };
}

/** Publishes the current task on the fleet feed. Call it last in a transaction. */
export async function publishTask(feed: Feed, tx: Tx, task_num: number): Promise<TaskRow> {
  const task = (await taskOfNum(tx, task_num))!;
  await feed.append(
    tx,
    'task',
    (await teamOfNum(tx, task.team_num))!.created_by,
    { ...toTask(task) },
    task.team_num,
  );
  return task;
}
