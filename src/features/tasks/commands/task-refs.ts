/** Finds tasks by the names that people use: a key (`DEM-1`), an id, or `<team>#<number>`. */
import type { Api } from '../../../cli/api.ts';
import { failed } from '../../../cli/failure.ts';
import { nullIfMissing, resolveNumberedRef } from '../../teams/commands/team-refs.ts';

/** The path of a task contains its team, so a bare id is searched in one team after another. */
export async function findTask(api: Api, ref: string) {
  if (ref.startsWith('task_') && !ref.includes('#')) {
    for (const { id: team_id } of await api.all('listTeams', {})) {
      const found = await nullIfMissing(api.callWithRetry('getTask', { params: { team_id, task_id: ref } }));
      if (found) return found;
    }
    throw failed(`task not found: ${ref}`);
  }
  const { team_id, number } = (await resolveKey(api, ref)) ?? (await resolveNumberedRef(api, ref, 'task'));
  for await (const task of api.each('listTasks', { params: { team_id } })) {
    if (task.number === number) return task;
    if (task.number < number) break;
  }
  throw failed(`task not found: ${ref}`);
}
export type TaskRecord = Awaited<ReturnType<typeof findTask>>;

/** The team and number of `DEM-1`, in upper or lower case; null for text of another form. */
async function resolveKey(api: Api, ref: string): Promise<{ team_id: string; number: number } | null> {
  const match = /^([A-Z]{2,5})-(\d{1,15})$/i.exec(ref);
  if (!match) return null;
  const key = match[1]!.toUpperCase();
  const team = (await api.all('listTeams', {})).find((item) => item.key === key);
  if (!team) throw failed(`task not found: ${ref}`);
  return { team_id: team.id, number: Number(match[2]) };
}
