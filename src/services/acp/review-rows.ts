/** Reviews as an agent makes and unmakes them: a row per question, before anybody is shown it. */
import type { RequestId } from '../../acp/message.ts';
import type { Permission } from '../../acp/permission.ts';
import type { Asking } from '../../acp/state.ts';
import {
  findReview,
  insertReview,
  pendingReviews,
  queuedReviews,
  type ReviewRow,
  toReview,
  updateReview,
} from '../../store/reviews.ts';
import type { Tx } from '../../store/store.ts';
import type { AgentsContext } from '../agents/context.ts';
import type { Exchange } from './exchange.ts';
import { awaitLeader, castOf, firstRoute, type ReviewRouting } from './review-routing.ts';

export function openReview(
  exchange: Exchange,
  asking: Asking,
  { tool_call, options }: Permission,
  timeout_ms: number | null,
  routing: ReviewRouting,
): void {
  const { tx, agent, session, now, context } = exchange;
  const id = exchange.reviewId(asking.number);
  const expires_at = timeout_ms === null ? null : now + timeout_ms;
  const first = firstRoute(castOf(tx, agent), agent);
  insertReview(tx, {
    id,
    agent_num: agent.num,
    session_num: session.num,
    request_id: JSON.stringify(asking.id),
    tool_call: exchange.toldJson(JSON.stringify(tool_call)),
    // Their ids go back to the agent as they are.
    options: JSON.stringify(options.map((one) => ({ ...one, name: exchange.told(one.name) }))),
    status: 'pending',
    ...first,
    route: first.routed_to === null ? 'human' : 'leader',
    created_at: now,
    expires_at,
  });
  if (expires_at !== null) context.options.timers.set(tx, 'review_deadline', id, expires_at, {});
  if (first.routed_to !== null) awaitLeader(context, routing, tx, findReview(tx, id)!);
  context.options.facts.record(tx, 'review_opened', id, { review_id: id, agent_id: agent.id });
  exchange.touch();
  publishReview(context, tx, id);
}

/**
 * The agent no longer waits: for those that nobody answered, and for an answer that has not reached it. Its id is all that
 * is known of the request: an agent that used it twice withdraws both.
 */
export function withdrawReviews(exchange: Exchange, id: RequestId): void {
  const { tx, agent, session, context } = exchange;
  const request_id = JSON.stringify(id);
  for (const row of pendingReviews(tx, agent.num, session.num)) {
    if (row.request_id === request_id) closeReview(context, tx, row, { status: 'cancelled' });
  }
  for (const row of queuedReviews(tx, session.num)) {
    if (row.request_id !== request_id) continue;
    exchange.error(...undeliverable(row));
    markUndeliverable(context, tx, row, 'the agent withdrew the question');
  }
  exchange.touch();
}

/** The session is over: nobody waits any more. */
export function abandonReviews(context: AgentsContext, tx: Tx, agent_num: number, session_num: number): void {
  for (const row of pendingReviews(tx, agent_num, session_num)) {
    closeReview(context, tx, row, { status: 'cancelled' });
  }
  for (const row of queuedReviews(tx, session_num)) {
    context.error(tx, row.agent_id, row.session_id, ...undeliverable(row));
    markUndeliverable(context, tx, row, 'the agent ended');
  }
}

/** Ends a review, in the caller's transaction, and tells it. */
export function closeReview(
  context: AgentsContext,
  tx: Tx,
  row: ReviewRow,
  changes: Parameters<typeof updateReview>[2],
): void {
  updateReview(tx, row.num, { answered_at: context.now(), ...changes });
  context.options.timers.clear(tx, 'review_deadline', row.id);
  context.options.timers.clear(tx, 'review_to_humans', row.id);
  context.options.facts.record(tx, 'review_closed', row.id, { review_id: row.id });
  publishReview(context, tx, row.id);
}

export function publishReview(context: AgentsContext, tx: Tx, id: string): void {
  const row = findReview(tx, id)!;
  context.options.feed.append(tx, 'review', row.owner_id, { ...toReview(row) }, row.team_num, row.agent_id);
}

function undeliverable(row: ReviewRow): [code: string, error: string, details: object] {
  const by = row.answered_by === null ? '' : ` of ${row.answered_by}`;
  return ['review_undeliverable', `the answer${by} did not reach the agent`, { review_id: row.id }];
}

function markUndeliverable(context: AgentsContext, tx: Tx, row: ReviewRow, why: string): void {
  updateReview(tx, row.num, { delivery: 'undeliverable' });
  context.options.audit.record(tx, {
    event: 'permission_undeliverable',
    level: 'warn',
    agent_id: row.agent_id,
    user_id: null,
    ip: null,
    details: { review_id: row.id, answered_by: row.answered_by, option_id: row.option_id, why },
  });
  publishReview(context, tx, row.id);
}
