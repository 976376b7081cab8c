/** SQL for the tasks of runs. Every run has a task, so runs can create one; `features/tasks` has the rest. */
import type { Insertable } from 'kysely';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { type RunRow, runOfNum } from './runs.ts';

/** Inserts a task with the team's next number. Returns its num. */
export async function insertTask(tx: Tx, row: Omit<Insertable<Tables['tasks']>, 'number'>): Promise<number> {
  const newest = await tx.get(
    tx.sql
      .selectFrom('tasks')
      .select(({ fn }) => fn.max('number').as('number'))
      .where('team_num', '=', row.team_num),
  );
  const number = (newest?.number ?? 0) + 1;
  return (await tx.get(
    tx.sql
      .insertInto('tasks')
      .values({ ...row, number })
      .returning('num'),
  ))!.num;
}

/** The newest of a task's runs that is not over. `except_num`: a run that does not count. */
export async function findOpenRun(
  reader: Reader,
  task_num: number,
  { except_num = 0 }: { except_num?: number } = {},
): Promise<RunRow | undefined> {
  const newest = await reader.get(
    reader.sql
      .selectFrom('runs')
      .select('num')
      .where('task_num', '=', task_num)
      .where('num', '<>', except_num)
      .where('status', 'in', ['pending', 'running', 'input_required'])
      .orderBy('num', 'desc')
      .limit(1),
  );
  return newest && (await runOfNum(reader, newest.num));
}
