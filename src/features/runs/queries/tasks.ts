/** SQL for the tasks of runs. Every run has a task, so runs can create one; `features/tasks` has the rest. */
import type { Insertable } from 'kysely';
import type { Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';

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
