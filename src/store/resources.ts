/** Describes records for the access policy: their owner, and the ids to which a token can be limited. */
import type { Owned } from '../core/policy.ts';
import type { Reader } from './store.ts';
import { areRoot } from './users.ts';
import { peopleOf } from './views.ts';

/** The columns that determine access to an agent, or to its reviews and elicitations. */
interface OwnedRow {
  owner_id: string;
  team_num: number | null;
  team_id: string | null;
}

export async function agentResource(
  reader: Reader,
  { id, owner_id, team_num, team_id }: OwnedRow & { id: string },
): Promise<Owned> {
  return { owner_id, human_ids: await humans(reader, team_num), agent_id: id, team_id };
}

/** Also for elicitations: like a review, an elicitation belongs to the agent that asks. */
export function reviewResource(
  reader: Reader,
  { agent_id: id, ...row }: OwnedRow & { agent_id: string },
): Promise<Owned> {
  return agentResource(reader, { ...row, id });
}

export async function teamResource(
  reader: Reader,
  team: { id: string; num: number; created_by: string },
): Promise<Owned> {
  return {
    owner_id: team.created_by,
    human_ids: await humans(reader, team.num),
    agent_id: null,
    team_id: team.id,
  };
}

/** Whether the owner of an agent may access it: of an agent in a team, only while they are in the team, or root. */
export async function ownerHasAccess(
  reader: Reader,
  { owner_id, team_num }: Pick<OwnedRow, 'owner_id' | 'team_num'>,
): Promise<boolean> {
  if (team_num === null || (await peopleOf(reader, team_num)).includes(owner_id)) return true;
  return areRoot(reader, [owner_id]);
}

async function humans(reader: Reader, team_num: number | null): Promise<string[]> {
  return team_num === null ? [] : peopleOf(reader, team_num);
}
