/** SQL for tasks and their threads: rows in, rows and records out. The service has the rules. */
import type { ExpressionBuilder, Nullable, Selectable, Updateable } from 'kysely';
import { rfc3339 } from '../../../base/clock.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import type { Task } from '../rules/task.ts';

export type TaskRow = Selectable<Tables['tasks']> & {
  team_id: string;
  team_key: string;
  run_id: string | null;
  steps_completed: number;
  steps_total: number;
};

function taskQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('tasks')
    .innerJoin('teams', 'teams.num', 'tasks.team_num')
    .selectAll('tasks')
    .select(['teams.id as team_id', 'teams.key as team_key'])
    .leftJoin('runs as newest', (join) =>
      join.on((eb) =>
        eb(
          'newest.num',
          '=',
          eb
            .selectFrom('runs')
            .select(({ fn }) => fn.max('runs.num').as('num'))
            .whereRef('runs.task_num', '=', 'tasks.num'),
        ),
      ),
    )
    .select((eb) => [
      'newest.id as run_id',
      stepsOfNewest(eb).$asScalar().$notNull().as('steps_total'),
      stepsOfNewest(eb)
        .where('run_steps.status', '=', 'completed')
        .$asScalar()
        .$notNull()
        .as('steps_completed'),
    ]);
}

type WithNewest = Tables & { newest: Nullable<Tables['runs']> };

/** Counts entries of an index, so that a list needs no query per task. */
function stepsOfNewest(eb: ExpressionBuilder<WithNewest, 'newest'>) {
  return eb
    .selectFrom('run_steps')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .whereRef('run_steps.run_num', '=', 'newest.num');
}

export function findTask(reader: Reader, id: string): Promise<TaskRow | undefined> {
  return reader.get(taskQuery(reader.sql).where('tasks.id', '=', id));
}

export function taskOfNum(reader: Reader, num: number): Promise<TaskRow | undefined> {
  return reader.get(taskQuery(reader.sql).where('tasks.num', '=', num));
}

export function taskOfConversation(reader: Reader, conversation_id: string): Promise<TaskRow | undefined> {
  return reader.get(taskQuery(reader.sql).where('tasks.conversation_id', '=', conversation_id));
}

export interface TaskFilter {
  team_num: number;
  status?: TaskRow['status'] | undefined;
  assignee_member_id?: string | undefined;
  before_num?: number | undefined;
  /** Absent: no filter. */
  limit?: number | undefined;
}

/** Newest first. */
export function listTasks(reader: Reader, filter: TaskFilter): Promise<TaskRow[]> {
  const { team_num, status, assignee_member_id, before_num, limit } = filter;
  let query = taskQuery(reader.sql).where('tasks.team_num', '=', team_num).orderBy('tasks.num', 'desc');
  if (status !== undefined) query = query.where('tasks.status', '=', status);
  if (assignee_member_id !== undefined)
    query = query.where('tasks.assignee_member_id', '=', assignee_member_id);
  if (before_num !== undefined) query = query.where('tasks.num', '<', before_num);
  return reader.all(limit === undefined ? query : query.limit(limit));
}

export async function updateTask(tx: Tx, num: number, changes: Updateable<Tables['tasks']>): Promise<void> {
  await tx.run(tx.sql.updateTable('tasks').set(changes).where('num', '=', num));
}

export function toTask(row: TaskRow): Task {
  return {
    id: row.id,
    number: row.number,
    key: `${row.team_key}-${row.number}`,
    team_id: row.team_id,
    title: row.title,
    description: row.description,
    status: row.status,
    assignee_member_id: row.assignee_member_id,
    conversation_id: row.conversation_id,
    run_id: row.run_id,
    run_steps: { completed: row.steps_completed, total: row.steps_total },
    version: row.version,
    created_by: row.created_by,
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
  };
}
