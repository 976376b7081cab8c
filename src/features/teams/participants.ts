/** Resolves an actor id within a team to a member or a person. */

import { invalid } from '../../core/problem.ts';
import type { Reader } from '../../store/store.ts';
import { findUser, findUserByName } from '../../store/users.ts';
import { peopleOf } from '../../store/views.ts';
import { humanActorId, memberActorId, parseUsername } from '../actors/rules/actor.ts';
import type { TeamRow } from './queries.ts';
import type { Member, TeamSpec } from './rules/team.ts';

export type Actor =
  | { kind: 'member'; actor_id: string; role: 'leader' | 'worker'; member: Member }
  | { kind: 'human'; actor_id: string; role: 'human'; user_id: string; username: string };

/** A team with its members. For a run, they come from the spec with which the run was created. */
export interface Participants {
  team: TeamRow;
  spec: TeamSpec;
  /** The user that a bare `user` refers to: the run's creator or, without a run, the team's. */
  user_id: string;
}

/**
 * Accepts `<member_id>@<team_id>`, `user:<username>`, a bare member id, `leader` or `user`. Throws `unknown actor: <id>`,
 * also for a person who is neither the team's creator, nor one of its human members, nor root.
 */
export async function resolveActor(
  reader: Reader,
  { team, spec, user_id }: Participants,
  ref: string,
): Promise<Actor> {
  const unknown = () => invalid(`unknown actor: ${ref}`, 'unknown_actor');
  const username = parseUsername(ref);
  if (username !== null) {
    const user = await findHuman(reader, team, { username });
    if (!user) throw unknown();
    return human(user);
  }
  const suffix = `@${team.id}`;
  const member_id = ref.endsWith(suffix) ? ref.slice(0, -suffix.length) : ref;
  const member = spec.members.find((member) => member.member_id === member_id);
  if (member) return memberActor({ team, spec }, member);
  if (ref === 'leader' && spec.leader_member_id !== null) {
    return memberActor(
      { team, spec },
      spec.members.find((member) => member.member_id === spec.leader_member_id)!,
    );
  }
  const user = ref === 'user' ? await findHuman(reader, team, { id: user_id }) : undefined;
  if (!user) throw unknown();
  return human(user);
}

export function memberActor(
  { team, spec }: Pick<Participants, 'team' | 'spec'>,
  member: Member,
): Actor & { kind: 'member' } {
  const role = member.member_id === spec.leader_member_id ? 'leader' : 'worker';
  return { kind: 'member', actor_id: memberActorId(member.member_id, team.id), role, member };
}

function human({ id, username }: { id: string; username: string }): Actor {
  return { kind: 'human', actor_id: humanActorId(username), role: 'human', user_id: id, username };
}

async function findHuman(
  reader: Reader,
  team: TeamRow,
  by: { username: string } | { id: string },
): Promise<{ id: string; username: string } | undefined> {
  const user = 'id' in by ? await findUser(reader, by.id) : await findUserByName(reader, by.username);
  if (!user || user.role === 'root') return user;
  return (await peopleOf(reader, team.num)).includes(user.id) ? user : undefined;
}
