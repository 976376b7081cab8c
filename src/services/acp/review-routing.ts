/**
 * Where permission reviews of a team's members go: before the leader, where the run says so, and on to humans when the
 * leader does not answer in time. A leader's own questions are for humans from the start.
 */
import type { Permission } from '../../acp/permission.ts';
import { limits } from '../../base/limits.ts';
import { actorIdOf } from '../../domain/actor.ts';
import { Problem } from '../../domain/problem.ts';
import type { ReviewParty } from '../../domain/review.ts';
import type { TeamSpec } from '../../domain/team.ts';
import { type ReviewRow, updateReview } from '../../store/reviews.ts';
import { runOfNum, specOf } from '../../store/runs.ts';
import type { Reader, Tx } from '../../store/store.ts';
import { teamOfNum } from '../../store/teams.ts';
import type { AgentsContext } from '../agents/context.ts';
import type { Cast } from '../teams/cast.ts';

/** Tells a leader that a review waits for it. */
export interface ReviewNotice {
  run_num: number;
  from_actor_id: string;
  to_actor_id: string;
  payload: { permission_review: string; title: string | null };
}

export interface ReviewRouting {
  /** How long a leader has. */
  leader_timeout_ms(): number;
  /** Called in the transaction that puts the review before the leader. A Problem changes nothing: it is not told then. */
  notify(tx: Tx, notice: ReviewNotice): void;
}

interface OfMember {
  team_num: number | null;
  run_num: number | null;
  member_id: string | null;
}

/** The team that an agent belongs to, as its run has it; null for an agent of no team. */
export function castOf(reader: Reader, { team_num, run_num }: OfMember): Cast | null {
  const team = team_num === null ? undefined : teamOfNum(reader, team_num);
  if (!team) return null;
  const run = run_num === null ? undefined : runOfNum(reader, run_num);
  const spec = run ? specOf(run) : (JSON.parse(team.spec) as TeamSpec);
  return { team, spec, user_id: run?.created_by ?? team.created_by };
}

/** What the agent is in its team. */
export function partyOf(cast: Cast | null, { member_id }: OfMember): ReviewParty {
  if (cast === null || member_id === null) return 'none';
  return member_id === cast.spec.leader_member_id ? 'leader' : 'worker';
}

/** Whom a new review of the agent is put before; `routed_to` is null for humans. */
export function firstRoute(
  cast: Cast | null,
  agent: OfMember,
): { origin_actor_id: string | null; routed_to: string | null } {
  if (cast === null || agent.member_id === null) return { origin_actor_id: null, routed_to: null };
  const { team, spec } = cast;
  const asks_leader = spec.review_route === 'leader' && partyOf(cast, agent) === 'worker';
  const { leader_member_id } = spec;
  return {
    origin_actor_id: actorIdOf(agent.member_id, team.id),
    routed_to: asks_leader && leader_member_id !== null ? actorIdOf(leader_member_id, team.id) : null,
  };
}

/** The review waits for a leader: it hears of it, and has so long. */
export function awaitLeader(context: AgentsContext, routing: ReviewRouting, tx: Tx, row: ReviewRow): void {
  const due_at = context.now() + routing.leader_timeout_ms();
  context.options.timers.set(tx, 'review_to_humans', row.id, due_at, {});
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
    routing.notify(tx, notice);
  } catch (error) {
    // A run that takes no more mail must not hold up what its agents say: the time of the leader runs all the same.
    if (!(error instanceof Problem)) throw error;
    context.options.logger.warn({ err: error, review_id: row.id }, 'a leader was not told of a review');
  }
}

/** The leader has had its time: every human who may answer is asked. */
export function passToHumans(context: AgentsContext, tx: Tx, row: ReviewRow): void {
  updateReview(tx, row.num, { route: 'human', routed_to: null });
  context.options.facts.record(tx, 'review_routed', row.id, { review_id: row.id });
  context.options.audit.record(tx, {
    event: 'permission_routed',
    agent_id: row.agent_id,
    user_id: null,
    ip: null,
    details: { review_id: row.id, from_actor_id: row.routed_to, to_actor_id: null, why: 'no answer in time' },
  });
}
