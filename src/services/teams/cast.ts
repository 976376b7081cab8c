/** Who an actor id means within a team: one of its members, or a human. */
import { actorIdOf, humanActorId, usernameOf } from '../../domain/actor.ts';
import { invalid } from '../../domain/problem.ts';
import type { Member, TeamSpec } from '../../domain/team.ts';
import type { Reader } from '../../store/store.ts';
import type { TeamRow } from '../../store/teams.ts';

export type Actor =
  | { kind: 'member'; actor_id: string; role: 'leader' | 'worker'; member: Member }
  | { kind: 'human'; actor_id: string; role: 'human'; user_id: string; username: string };

/** A team as it is cast: of a run, the spec that the run was created with. */
export interface Cast {
  team: TeamRow;
  spec: TeamSpec;
  /** The user whom a bare `user` means: the run's creator, else the team's. */
  user_id: string;
}

/**
 * `<member_id>@<team_id>`, `user:<username>`, a bare member id, `leader` or `user`. Throws `unknown actor: <id>`: also for a
 * human who is neither the team's creator, nor one of its humans, nor root.
 */
export function resolveActor(reader: Reader, { team, spec, user_id }: Cast, asked: string): Actor {
  const unknown = () => invalid(`unknown actor: ${asked}`, 'unknown_actor');
  const username = usernameOf(asked);
  if (username !== null) {
    const user = findHuman(reader, team, { username });
    if (!user) throw unknown();
    return human(user);
  }
  const suffix = `@${team.id}`;
  const member_id = asked.endsWith(suffix) ? asked.slice(0, -suffix.length) : asked;
  const member = spec.members.find((one) => one.member_id === member_id);
  if (member) return castMember({ team, spec }, member);
  if (asked === 'leader' && spec.leader_member_id !== null) {
    return castMember({ team, spec }, spec.members.find((one) => one.member_id === spec.leader_member_id)!);
  }
  const user = asked === 'user' ? findHuman(reader, team, { id: user_id }) : undefined;
  if (!user) throw unknown();
  return human(user);
}

export function castMember(
  { team, spec }: Pick<Cast, 'team' | 'spec'>,
  member: Member,
): Actor & { kind: 'member' } {
  const role = member.member_id === spec.leader_member_id ? 'leader' : 'worker';
  return { kind: 'member', actor_id: actorIdOf(member.member_id, team.id), role, member };
}

function human({ id, username }: { id: string; username: string }): Actor {
  return { kind: 'human', actor_id: humanActorId(username), role: 'human', user_id: id, username };
}

function findHuman(
  reader: Reader,
  team: TeamRow,
  by: { username: string } | { id: string },
): { id: string; username: string } | undefined {
  const query = reader.sql.selectFrom('users').select(['id', 'username', 'role']);
  const user = reader.get(
    'id' in by ? query.where('id', '=', by.id) : query.where('username', '=', by.username),
  );
  if (!user || user.role === 'root' || user.id === team.created_by) return user;
  const membership = reader.sql
    .selectFrom('team_humans')
    .select('user_id')
    .where('team_num', '=', team.num)
    .where('user_id', '=', user.id);
  return reader.get(membership) ? user : undefined;
}
