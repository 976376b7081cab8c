/** Finds teams and runs by the names that people use: an id, a team's name, or `<team>#<number>` for runs. */
import { limits } from '../../../base/limits.ts';
import { type Api, findByUniqueName } from '../../../cli/api.ts';
import { failed, usage } from '../../../cli/failure.ts';
import { Problem } from '../../../core/problem.ts';

export async function findTeam(api: Api, ref: string) {
  if (ref.startsWith('team_')) {
    const found = await nullIfMissing(api.call('getTeam', { params: { team_id: ref } }));
    if (found) return found;
  }
  return findByUniqueName(await api.all('listTeams', {}), ref, 'team');
}
export type TeamRecord = Awaited<ReturnType<typeof findTeam>>;

export async function findRun(api: Api, ref: string) {
  if (ref.startsWith('run_') && !ref.includes('#')) {
    return api.call('findRun', { params: { run_id: ref } });
  }
  const { team_id, number } = await resolveNumberedRef(api, ref, 'run');
  const query = { limit: limits.cli_run_page_items };
  for await (const run of api.each('listRuns', { params: { team_id }, query })) {
    if (run.number === number) return run;
    if (run.number < number) break;
  }
  throw failed(`run not found: ${ref}`);
}
export type RunRecord = Awaited<ReturnType<typeof findRun>>;

/** Reads `<team>#<number>`. Throws a usage error for other text; `noun` names what it refers to. */
export async function resolveNumberedRef(
  api: Api,
  ref: string,
  noun: string,
): Promise<{ team_id: string; number: number }> {
  const match = /^(.+)#(\d{1,15})$/.exec(ref);
  if (!match) throw usage(`${ref}: name a ${noun} by its id, or as <team>#<number>`);
  return { team_id: (await findTeam(api, match[1]!)).id, number: Number(match[2]) };
}

export async function nullIfMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Problem && error.kind === 'not_found') return null;
    throw error;
  }
}
