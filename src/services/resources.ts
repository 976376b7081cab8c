/** Records as resources of the policy: whose they are, and what a limited token names them by. */
import type { Owned } from '../domain/policy.ts';
import type { AgentRow } from '../store/agents.ts';
import type { ReviewRow } from '../store/reviews.ts';
import type { Reader } from '../store/store.ts';
import { peopleOf, type TeamRow } from '../store/teams.ts';

export function agentResource(
  reader: Reader,
  { id, owner_id, team_num, team_id }: Pick<AgentRow, 'id' | 'owner_id' | 'team_num' | 'team_id'>,
): Owned {
  return { owner_id, human_ids: humans(reader, team_num), agent_id: id, team_id };
}

/** A review belongs to the agent that asks. */
export function reviewResource(reader: Reader, { agent_id: id, ...row }: Omit<ReviewRow, 'id'>): Owned {
  return agentResource(reader, { ...row, id });
}

export function teamResource(reader: Reader, team: Pick<TeamRow, 'id' | 'num' | 'created_by'>): Owned {
  return {
    owner_id: team.created_by,
    human_ids: humans(reader, team.num),
    agent_id: null,
    team_id: team.id,
  };
}

function humans(reader: Reader, team_num: number | null): string[] {
  return team_num === null ? [] : peopleOf(reader, team_num);
}
