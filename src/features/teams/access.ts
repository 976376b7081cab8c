/** Finds teams for callers with access. For other callers, they do not exist. */
import { type Action, authorize } from '../../core/policy.ts';
import { problems } from '../../core/problem.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { findTeam, type TeamRow } from './queries.ts';

/** Throws `team not found` if the team does not exist, or if the caller may not see it or do this with it. */
export async function requireTeam(
  reader: Reader,
  caller: Caller,
  action: Action,
  team_id: string,
): Promise<TeamRow> {
  const team = await findTeam(reader, team_id);
  if (!team) throw problems.teamNotFound();
  authorize(caller, action, await teamResource(reader, team), problems.teamNotFound);
  return team;
}
