/**
 * Decides who answers permission reviews of a team's members. If the run says so, the leader is asked first, and people are
 * asked if it does not answer in time. The leader's own requests go to people immediately.
 */
import type { Permission } from '../../acp/permission.ts';
import { limits } from '../../base/limits.ts';
import { Problem } from '../../core/problem.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import type { AgentCore } from '../agents/core.ts';
import type { Participants } from '../teams/participants.ts';
import { type Member, memberKind } from '../teams/rules/team.ts';
import { type ReviewRow, updateReview } from './queries.ts';
import type { ReviewNotice, ReviewRole } from './rules.ts';

export interface ReviewRouting {
  /** The participants in the team and run of an agent; null if it has no team. The feature `runs` implements this. */
  participants(reader: Reader, agent: Pick<Membership, 'team_num' | 'run_num'>): Promise<Participants | null>;
  /** The time limit for a leader. */
  leader_timeout_ms(): number;
  /**
   * Called in the transaction that routes the review to the leader. If it throws a Problem, it must not have changed
   * anything; the review is still routed, but the leader is not notified.
   */
  notify(tx: Tx, notice: ReviewNotice): Promise<void>;
}

/** The team and the member id of an agent; null for an agent without a team. */
interface Membership {
  team_num: number | null;
  run_num: number | null;
  member_id: string | null;
}

/** The role of the agent in its team. */
export function getRole(participants: Participants | null, { member_id }: Membership): ReviewRole {
  if (participants === null || member_id === null) return 'none';
  return member_id === participants.spec.leader_member_id ? 'leader' : 'worker';
}

/** Whether the member can answer reviews. `actor_calls`: whether agents can call the plane. */
export function canAnswer(member: Member, actor_calls: boolean): boolean {
  return actor_calls || memberKind(member) === 'outside';
}

/** The route of the agent's new review. `routed_to` is null for people. `actor_calls`: see `canAnswer`. */
export function firstRoute(
  participants: Participants | null,
  agent: Membership,
  actor_calls: boolean,
): { origin_actor_id: string | null; routed_to: string | null } {
  if (participants === null || agent.member_id === null) return { origin_actor_id: null, routed_to: null };
  const { team, spec } = participants;
  const asks_leader = spec.review_route === 'leader' && getRole(participants, agent) === 'worker';
  const leader = spec.members.find(({ member_id }) => member_id === spec.leader_member_id);
  return {
    origin_actor_id: memberActorId(agent.member_id, team.id),
    routed_to:
      asks_leader && leader && canAnswer(leader, actor_calls)
        ? memberActorId(leader.member_id, team.id)
        : null,
  };
}

/** Routes the review to the leader, notifies it, and starts its time limit. */
export async function awaitLeader(
  core: AgentCore,
  routing: ReviewRouting,
  tx: Tx,
  row: ReviewRow,
): Promise<void> {
  const due_at = core.clock.now() + routing.leader_timeout_ms();
  await core.timers.set(tx, 'review_to_humans', row.id, due_at, {});
  if (row.run_num === null || row.origin_actor_id === null || row.routed_to === null) return;
  const title = (JSON.parse(row.tool_call) as Permission['tool_call']).title;
  const notice = {
    run_num: row.run_num,
    from_actor_id: row.origin_actor_id,
    to_actor_id: row.routed_to,
    payload: {
      permission_review: row.id,
      title: typeof title === 'string' ? title.slice(0, limits.name_chars_max) : null,
    },
  };
  try {
    await routing.notify(tx, notice);
  } catch (error) {
    // A full mailbox must not block the agent's output. The leader's time limit still applies.
    if (!(error instanceof Problem)) throw error;
    core.log.warn({ err: error, review_id: row.id }, 'cannot notify a leader of a review');
  }
}

/** Routes the review to people, because the leader did not answer in time. */
export async function passToHumans(core: AgentCore, tx: Tx, row: ReviewRow): Promise<void> {
  await updateReview(tx, row.num, { route: 'human', routed_to: null });
  await core.facts.record(tx, 'review_routed', row.id, { review_id: row.id });
  await core.audit.record(tx, {
    event: 'permission_routed',
    agent_id: row.agent_id,
    user_id: null,
    ip: null,
    details: { review_id: row.id, from_actor_id: row.routed_to, to_actor_id: null, why: 'no answer in time' },
  });
}
