/** Finds runs for callers with access. For other callers, they do not exist. */
import { type Action, authorize } from '../../core/policy.ts';
import { problems } from '../../core/problem.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { requireTeam } from '../teams/access.ts';
import { findTeam, type TeamRow } from '../teams/queries.ts';
import { findRun, type RunRow } from './queries/runs.ts';

/** `team_id`: absent if the request path names only the run. Throws `team not found` and `run not found`. */
export async function requireRun(
  reader: Reader,
  caller: Caller,
  action: Action,
  run_id: string,
  team_id?: string,
): Promise<{ team: TeamRow; run: RunRow }> {
  const team = team_id === undefined ? undefined : await requireTeam(reader, caller, action, team_id);
  const run = await findRun(reader, run_id);
  if (!run || (team && run.team_num !== team.num)) throw problems.runNotFound();
  if (team) return { team, run };
  const found = (await findTeam(reader, run.team_id))!;
  authorize(caller, action, await teamResource(reader, found), problems.runNotFound);
  return { team: found, run };
}
