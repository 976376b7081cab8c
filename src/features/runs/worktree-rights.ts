/** Which worktrees of other agents the agents of a run may work in. */
import { ownerHasAccess } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import { areRoot } from '../../store/users.ts';
import type { AgentRow } from '../agents/queries/agents.ts';
import { parseEditors, teamOfNum } from '../teams/queries.ts';
import { type RunRow, runOfNum } from './queries/runs.ts';

/** Whether an agent of a run may work in the worktree of another agent. */
export async function mayUseWorktree(
  reader: Reader,
  { run_num }: Pick<AgentRow, 'run_num'>,
  other: Pick<AgentRow, 'team_num' | 'owner_id'>,
): Promise<boolean> {
  const run = run_num === null ? undefined : await runOfNum(reader, run_num);
  return run !== undefined && (await runMayUseWorktree(reader, run, other));
}

/**
 * Whether the run may use the worktree of an agent. It may if the agent belongs to its team. It also may if the agent belongs to
 * the run's creator, who must have access to it, and everybody who edited the team's definition may operate that agent;
 * otherwise, the author of a definition could use it to change a person's worktree without permission.
 */
export async function runMayUseWorktree(
  reader: Reader,
  run: RunRow,
  other: Pick<AgentRow, 'team_num' | 'owner_id'>,
): Promise<boolean> {
  const { team_num, owner_id } = other;
  if (team_num === run.team_num) return true;
  if (owner_id !== run.created_by || !(await ownerHasAccess(reader, other))) return false;
  const others = parseEditors((await teamOfNum(reader, run.team_num))!).filter((id) => id !== owner_id);
  return areRoot(reader, others);
}
