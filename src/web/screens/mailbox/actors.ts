/** The actors that mail in a run comes from and goes to. Pure. */
import type { RunRecord } from '../../api/queries.ts';
import type { MembersRecord } from '../run/facts.ts';

/** `api@team_1` is `api`, `user:ana` is `ana`. */
export function actorName(actor_id: string): string {
  return actor_id.startsWith('user:') ? actor_id.slice(5) : actor_id.replace(/@[^@]*$/, '');
}

/** The actors that a user may send mail as: the user first, then members without an agent. */
export function listSenders(
  { spec, team_id }: Pick<RunRecord, 'spec' | 'team_id'>,
  username?: string,
): string[] {
  if (username === undefined) return [];
  const external = spec.members.filter(({ agent }) => !agent);
  return [`user:${username}`, ...external.map(({ member_id }) => `${member_id}@${team_id}`)];
}

/** The actors that mail of a run can go to: its members, the leader first, and the users who take part. */
export function listActors(
  { spec, team_id }: Pick<RunRecord, 'spec' | 'team_id'>,
  known?: MembersRecord,
): string[] {
  const ids = spec.members.map(({ member_id }) => member_id);
  const ordered = [spec.leader_member_id, ...ids].filter((id) => id !== null);
  const people = known ? [known.leader, ...known.members].map(({ actor_id }) => actor_id) : [];
  return [...new Set([...ordered.map((id) => `${id}@${team_id}`), ...people])];
}
