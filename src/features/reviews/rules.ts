/**
 * A permission review: a request by an agent that needs an answer. It has two stored shapes, the row (`queries.ts`) and the record
 * (`contract.ts`); what people see is derived from the record.
 *
 *     status     pending ──▶ answered                 the first answer of a person or the leader
 *                pending ──▶ cancelled                by a person, with the turn, by the agent, or because the session ended
 *                pending ──▶ expired                  nobody answered in time
 *
 *     delivery   queued ──▶ written │ undeliverable   of the answer to the agent
 *
 *     route      leader ──▶ human                     the leader did not answer in time, or somebody routed it
 *                human ──▶ leader                     somebody routed it
 */
import { problems } from '../../core/problem.ts';
import type { Review } from './contract.ts';

export type { Review };

export const reviewStatuses = ['pending', 'answered', 'cancelled', 'expired'] as const;
export type ReviewStatus = (typeof reviewStatuses)[number];

export const decisions = ['allow', 'deny'] as const;
export type Decision = (typeof decisions)[number];

/** `queued`: on its way to the agent. `undeliverable`: the agent withdrew the request or ended before the answer arrived. */
export const deliveries = ['queued', 'written', 'undeliverable'] as const;

export const reviewRoutes = ['human', 'leader'] as const;
export type ReviewRoute = (typeof reviewRoutes)[number];

/** One of the agent's options. Its `kind` may be a value that the protocol does not define. */
type ReviewOption = Review['options'][number];

/** The role of the asking agent, for routing; `none` for an agent without a team. */
export type ReviewRole = 'none' | 'worker' | 'leader' | 'human';

/**
 * The route of a review to `target`. Throws if `target` is a worker or the asking agent, because workers never decide for
 * each other, and no agent decides for itself.
 */
export function routeTo(origin: ReviewRole, target: ReviewRole): ReviewRoute {
  if (target === 'human') return 'human';
  if (target === 'leader' && origin === 'worker') return 'leader';
  if (target === 'leader' && origin === 'leader') throw problems.ownReview();
  throw problems.workerReviewToWorker();
}

/** Throws unless the member is the leader to which the review was routed. */
export function assertMayDecide(
  origin: ReviewRole,
  by: ReviewRole,
  { is_routed_to }: { is_routed_to: boolean },
): void {
  if (by === 'worker' && origin === 'worker') throw problems.workerReviewToWorker();
  if (by !== 'leader' || origin !== 'worker' || !is_routed_to) throw problems.notAllowed();
}

const kindOf: Record<Decision, string> = { allow: 'allow_once', deny: 'reject_once' };

/**
 * The option for `allow` or `deny`; null unless exactly one option fits. It is never a permanent option, because these must
 * be named.
 */
export function optionFor(decision: Decision, options: readonly ReviewOption[]): ReviewOption | null {
  const fitting = options.filter(({ kind }) => kind === kindOf[decision]);
  return fitting.length === 1 ? fitting[0]! : null;
}

/** The decision that an option represents; null if its kind does not determine one. */
export function toDecision({ kind }: ReviewOption): Decision | null {
  if (kind.startsWith('allow')) return 'allow';
  return kind.startsWith('reject') ? 'deny' : null;
}

/** The notice to a leader about a pending review. */
export interface ReviewNotice {
  run_num: number;
  from_actor_id: string;
  to_actor_id: string;
  payload: { permission_review: string; title: string | null };
}
