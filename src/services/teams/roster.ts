/** Who takes part in a run, and how they are: members with their agents, and the humans of the team. */
import { humanActorId } from '../../domain/actor.ts';
import type { RunMember } from '../../domain/run.ts';
import { countUnacknowledged } from '../../store/mail.ts';
import { type RunRow, specOf } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';
import { peopleOf, type TeamRow } from '../../store/teams.ts';
import { castMember } from './cast.ts';

export interface RosterOf {
  run_id: string;
  team_id: string;
  /** Without a leader the first member, as the worker that it is. */
  leader: RunMember;
  /** Everybody: members in the order of the spec, then humans by name. */
  members: RunMember[];
}

export function rosterOf(reader: Reader, team: TeamRow, run: RunRow): RosterOf {
  const spec = specOf(run);
  const agents = new Map(
    reader
      .all(
        reader.sql
          .selectFrom('agents')
          .select(['id', 'member_id', 'node_id', 'status'])
          .where('run_num', '=', run.num)
          .orderBy('num'),
      )
      .map((agent) => [agent.member_id, agent]),
  );
  const waiting = countUnacknowledged(reader, run);
  const members = spec.members.map((member): RunMember => {
    const { actor_id, role } = castMember({ team, spec }, member);
    const agent = agents.get(member.member_id);
    return {
      ...{ actor_id, member_id: member.member_id, role },
      agent_id: agent?.id ?? null,
      node_id: agent?.node_id ?? member.agent?.node_id ?? null,
      status: (agent?.status ?? null) as RunMember['status'],
      pending_messages: waiting.get(actor_id) ?? 0,
    };
  });
  const humans = reader
    .all(
      reader.sql
        .selectFrom('users')
        .select('username')
        .where('id', 'in', peopleOf(reader, team.num))
        .orderBy('username'),
    )
    .map(({ username }): RunMember => {
      const actor_id = humanActorId(username);
      const nothing = { member_id: null, agent_id: null, node_id: null, status: null };
      return { actor_id, role: 'human', ...nothing, pending_messages: waiting.get(actor_id) ?? 0 };
    });
  const leader = members.find(({ role }) => role === 'leader') ?? members[0]!;
  return { run_id: run.id, team_id: team.id, leader, members: [...members, ...humans] };
}
