import { problems } from './problem.ts';

/** A permission review: a question of an agent that somebody has to answer, in the agent's own words. */
export const reviewStatuses = ['pending', 'answered', 'cancelled', 'expired'] as const;
export type ReviewStatus = (typeof reviewStatuses)[number];

export const decisions = ['allow', 'deny'] as const;
export type Decision = (typeof decisions)[number];

/** `queued`: on its way to the agent. `undeliverable`: the agent no longer waited, or died, before it arrived. */
export const deliveries = ['queued', 'written', 'undeliverable'] as const;
export type Delivery = (typeof deliveries)[number];

export const reviewRoutes = ['human', 'leader'] as const;
export type ReviewRoute = (typeof reviewRoutes)[number];

/** As the agent offered it; `kind` is the agent's word too, and may be one that nobody knows. */
export interface ReviewOption {
  option_id: string;
  name: string;
  kind: string;
}

export interface Review {
  id: string;
  agent_id: string;
  session_id: string;
  /** Of an agent that is a team's member; else null, as `run_id` and `origin_actor_id`. */
  team_id: string | null;
  run_id: string | null;
  /** The member that asks. */
  origin_actor_id: string | null;
  route: ReviewRoute;
  /** The actor that it was put before; null: every human who may answer. */
  routed_to: string | null;
  /** ACP's, unchanged. */
  tool_call: Record<string, unknown>;
  options: ReviewOption[];
  status: ReviewStatus;
  decision: Decision | null;
  option_id: string | null;
  answered_by: string | null;
  delivery: Delivery | null;
  created_at: string;
  answered_at: string | null;
  expires_at: string | null;
}

/** Who asks and who is asked, as far as routing goes; an agent of no team is `none`. */
export type ReviewParty = 'none' | 'worker' | 'leader' | 'human';

/** Where a review goes that is put before somebody. Throws: a worker never decides on a worker, and nobody on itself. */
export function routeTo(origin: ReviewParty, target: ReviewParty): ReviewRoute {
  if (target === 'human') return 'human';
  if (target === 'leader' && origin === 'worker') return 'leader';
  if (target === 'leader' && origin === 'leader') throw problems.ownReview();
  throw problems.workerReviewToWorker();
}

/** Throws unless a member may answer the review, or pass it on: the leader that it was put before. */
export function mustDecide(
  origin: ReviewParty,
  by: ReviewParty,
  { is_routed_to }: { is_routed_to: boolean },
): void {
  if (by === 'worker' && origin === 'worker') throw problems.workerReviewToWorker();
  if (by !== 'leader' || origin !== 'worker' || !is_routed_to) throw problems.notAllowed();
}

const kindOf: Record<Decision, string> = { allow: 'allow_once', deny: 'reject_once' };

/**
 * The one option that a plain decision stands for; null when there is none or more than one, and never a lasting one:
 * then the option itself has to be named.
 */
export function optionFor(decision: Decision, options: readonly ReviewOption[]): ReviewOption | null {
  const fitting = options.filter(({ kind }) => kind === kindOf[decision]);
  return fitting.length === 1 ? fitting[0]! : null;
}

/** What an option means as a decision; null where its kind does not say. */
export function decisionOf({ kind }: ReviewOption): Decision | null {
  if (kind.startsWith('allow')) return 'allow';
  return kind.startsWith('reject') ? 'deny' : null;
}
