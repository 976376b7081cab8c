/** The participants of a run: the members of its team with their agents, and the people who share the team. */
import type { Reader } from '../../store/store.ts';
import { usernamesOf } from '../../store/users.ts';
import { peopleOf } from '../../store/views.ts';
import { humanActorId } from '../actors/rules/actor.ts';
import type { AgentRow } from '../agents/queries/agents.ts';
import { agentsOfRun } from '../agents/queries/run-agents.ts';
import { memberActor, type Participants } from '../teams/participants.ts';
import { type TeamRow, teamOfNum } from '../teams/queries.ts';
import type { Member } from '../teams/rules/team.ts';
import { parseSpec, type RunRow, runOfNum } from './queries/runs.ts';
import type { RunMember, RunMembers } from './rules/run.ts';

/** The team as defined in the run or, without a run, as the next run would use it. */
export function getParticipants(team: TeamRow, run: RunRow | null | undefined): Participants {
  return { team, spec: parseSpec(run ?? team), user_id: run?.created_by ?? team.created_by };
}

/** The participants in the team and run of an agent; null for an agent without a team. */
export async function participantsOfAgent(
  reader: Reader,
  { team_num, run_num }: { team_num: number | null; run_num: number | null },
): Promise<Participants | null> {
  const team = team_num === null ? undefined : await teamOfNum(reader, team_num);
  if (!team) return null;
  return getParticipants(team, run_num === null ? null : await runOfNum(reader, run_num));
}

/** Whether a run created this agent for the member, on the member's node. */
export function isAgentOfMember(agent: AgentRow, run: RunRow, member: Member): boolean {
  return (
    agent.team_num === run.team_num &&
    agent.run_num === run.num &&
    agent.member_id === member.member_id &&
    agent.node_id === member.agent?.node_id
  );
}

/** The end of a completed run stops its agents, which is not a cancellation to the people who read the run. */
function memberStatus({ status, stopped_by_run }: Pick<AgentRow, 'status' | 'stopped_by_run'>) {
  return status === 'cancelled' && stopped_by_run === 'completed' ? 'completed' : status;
}

/** `pending`: the number of unacknowledged messages per actor. Actors without any may be absent. */
export async function runMembers(
  reader: Reader,
  team: TeamRow,
  run: RunRow,
  pending: ReadonlyMap<string, number>,
): Promise<RunMembers> {
  const spec = parseSpec(run);
  const agents = new Map((await agentsOfRun(reader, run.num)).map((agent) => [agent.member_id, agent]));
  const members = spec.members.map((member): RunMember => {
    const { actor_id, role } = memberActor({ team, spec }, member);
    const agent = agents.get(member.member_id);
    return {
      ...{ actor_id, member_id: member.member_id, role },
      agent_id: agent?.id ?? null,
      node_id: agent?.node_id ?? member.agent?.node_id ?? null,
      status: agent ? memberStatus(agent) : null,
      pending_messages: pending.get(actor_id) ?? 0,
    };
  });
  const humans = (await usernamesOf(reader, await peopleOf(reader, team.num))).map((username): RunMember => {
    const actor_id = humanActorId(username);
    const nothing = { member_id: null, agent_id: null, node_id: null, status: null };
    return { actor_id, role: 'human', ...nothing, pending_messages: pending.get(actor_id) ?? 0 };
  });
  const leader = members.find(({ role }) => role === 'leader') ?? members[0]!;
  return { run_id: run.id, team_id: team.id, leader, members: [...members, ...humans] };
}
