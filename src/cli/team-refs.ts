/** Teams, runs and tasks as people name them: by id, a team also by its name, and the others as `<team>#<number>`. */
import { limits } from '../base/limits.ts';
import { Problem } from '../domain/problem.ts';
import { type Api, onlyNamed } from './api.ts';
import { failed, usage } from './failure.ts';

export async function findTeam(api: Api, ref: string) {
  if (ref.startsWith('team_')) {
    const found = await orNull(api.call('getTeam', { params: { team_id: ref } }));
    if (found) return found;
  }
  return onlyNamed(await api.all('listTeams', {}), ref, 'team');
}
export type TeamRecord = Awaited<ReturnType<typeof findTeam>>;

export async function findRun(api: Api, ref: string) {
  if (ref.startsWith('run_') && !ref.includes('#')) {
    return api.call('findRun', { params: { run_id: ref } });
  }
  const { team_id, number } = await numbered(api, ref, 'run');
  const query = { limit: limits.cli_run_page_items };
  for await (const run of api.each('listRuns', { params: { team_id }, query })) {
    if (run.number === number) return run;
    if (run.number < number) break;
  }
  throw failed(`run not found: ${ref}`);
}
export type RunRecord = Awaited<ReturnType<typeof findRun>>;

/** A task's path begins with its team, so that a bare id is looked for in one team after the other. */
export async function findTask(api: Api, ref: string) {
  if (ref.startsWith('task_') && !ref.includes('#')) {
    for (const { id: team_id } of await api.all('listTeams', {})) {
      const found = await orNull(api.patiently('getTask', { params: { team_id, task_id: ref } }));
      if (found) return found;
    }
    throw failed(`task not found: ${ref}`);
  }
  const { team_id, number } = await numbered(api, ref, 'task');
  for await (const task of api.each('listTasks', { params: { team_id } })) {
    if (task.number === number) return task;
    if (task.number < number) break;
  }
  throw failed(`task not found: ${ref}`);
}
export type TaskRecord = Awaited<ReturnType<typeof findTask>>;

async function numbered(api: Api, ref: string, noun: string): Promise<{ team_id: string; number: number }> {
  const match = /^(.+)#(\d{1,15})$/.exec(ref);
  if (!match) throw usage(`${ref}: name a ${noun} by its id, or as <team>#<number>`);
  return { team_id: (await findTeam(api, match[1]!)).id, number: Number(match[2]) };
}

async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Problem && error.kind === 'not_found') return null;
    throw error;
  }
}
