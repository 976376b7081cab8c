/** Reviews as an agent makes and unmakes them: a row per question, before anybody is shown it. */
import { isRecord, type RequestId, rpcErrors } from '../../acp/message.ts';
import { readOption } from '../../acp/reading.ts';
import type { Asking } from '../../acp/state.ts';
import { limits } from '../../base/limits.ts';
import type { ReviewOption } from '../../domain/review.ts';
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

/** One that cannot be read is refused, and told. */
export function openReview(
  exchange: Exchange,
  asking: Asking,
  params: unknown,
  timeout_ms: number | null,
): void {
  const { tx, agent, session, now, context } = exchange;
  const asked = readPermission(params);
  if (asked === null) {
    exchange.error(
      'permission_unreadable',
      'the agent asked for a permission in a form that ACP does not have',
    );
    exchange.respond(asking.id, { error: rpcErrors.invalidParams });
    return;
  }
  const id = exchange.reviewId(asking.number);
  const expires_at = timeout_ms === null ? null : now + timeout_ms;
  insertReview(tx, {
    id,
    agent_num: agent.num,
    session_num: session.num,
    request_id: JSON.stringify(asking.id),
    tool_call: JSON.stringify(asked.tool_call),
    options: JSON.stringify(asked.options),
    status: 'pending',
    route: 'human',
    created_at: now,
    expires_at,
  });
  if (expires_at !== null) context.options.timers.set(tx, 'review_deadline', id, expires_at, {});
  context.options.facts.record(tx, 'review_opened', id, { review_id: id, agent_id: agent.id });
  exchange.touch();
  publishReview(context, tx, id);
}

/** The agent no longer waits: for those that nobody answered, and for an answer that has not reached it. */
export function withdrawReviews(exchange: Exchange, id: RequestId, asking: readonly Asking[]): void {
  const { tx, session, context } = exchange;
  for (const { number } of asking) {
    const row = findReview(tx, exchange.reviewId(number));
    if (row?.status === 'pending') closeReview(context, tx, row, { status: 'cancelled' });
  }
  for (const row of queuedReviews(tx, session.num)) {
    if (row.request_id !== JSON.stringify(id)) continue;
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
  publishReview(context, tx, row.id);
}

export function publishReview(context: AgentsContext, tx: Tx, id: string): void {
  const row = findReview(tx, id)!;
  context.options.feed.append(tx, 'review', row.owner_id, { ...toReview(row) });
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

function readPermission(
  params: unknown,
): { tool_call: Record<string, unknown>; options: ReviewOption[] } | null {
  if (!isRecord(params) || !Array.isArray(params.options)) return null;
  const { toolCall, options } = params;
  if (options.length > limits.review_options_max) return null;
  const read = options.map(readOption);
  if (read.includes(null)) return null;
  return { tool_call: isRecord(toolCall) ? toolCall : {}, options: read as ReviewOption[] };
}
