/** Finding teams and what belongs to them, for those who may: what others have is as good as none. */
import { type Action, authorize } from '../../domain/policy.ts';
import { problems } from '../../domain/problem.ts';
import type { Caller } from '../../domain/user.ts';
import { findRun, type RunRow } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';
import { findTeam, type TeamRow } from '../../store/teams.ts';
import { teamResource } from '../resources.ts';

export function mustFindTeam(reader: Reader, caller: Caller, action: Action, team_id: string): TeamRow {
  const team = findTeam(reader, team_id);
  if (!team) throw problems.teamNotFound();
  authorize(caller, action, teamResource(reader, team), problems.teamNotFound);
  return team;
}

/** `team_id`: absent where the path names the run alone. */
export function mustFindRun(
  reader: Reader,
  caller: Caller,
  action: Action,
  run_id: string,
  team_id?: string,
): { team: TeamRow; run: RunRow } {
  const team = team_id === undefined ? undefined : mustFindTeam(reader, caller, action, team_id);
  const run = findRun(reader, run_id);
  if (!run || (team && run.team_num !== team.num)) throw problems.runNotFound();
  if (team) return { team, run };
  const found = findTeam(reader, run.team_id)!;
  authorize(caller, action, teamResource(reader, found), problems.runNotFound);
  return { team: found, run };
}
