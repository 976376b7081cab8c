/** Creates and ends an agent's reviews. There is one row per request, written before anyone sees the request. */
import { type Permission, shortenToolCall } from '../../acp/permission.ts';
import type { ReceivedRequest } from '../../acp/state.ts';
import type { Requester } from '../../acp/subagents.ts';
import { problems } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import type { AcpTransaction } from '../agents/acp-transaction.ts';
import type { AgentCore } from '../agents/core.ts';
import { AgentRequests } from './agent-requests.ts';
import { limits } from './limits.ts';
import {
  findReview,
  insertReview,
  pendingReviews,
  pendingToolCallChars,
  queuedReviews,
  type ReviewRow,
  toReview,
  updateReview,
} from './queries.ts';
import { awaitLeader, firstRoute, type ReviewRouting } from './routing.ts';

export const reviewRequests = new AgentRequests<ReviewRow>({
  name: 'review',
  table: 'reviews',
  notFound: problems.reviewNotFound,
  undeliverable_event: 'permission_undeliverable',
  answerOf: ({ option_id }) => ({ option_id }),
  find: findReview,
  pending: pendingReviews,
  queued: queuedReviews,
  update: updateReview,
  cancel: (core, tx, row) => closeUnanswered(core, tx, row, { status: 'cancelled' }),
  publish: publishReview,
});

/** Stores and publishes a review, and routes it. `timeout_ms`: until it expires; null: it does not. */
export async function openReview(
  transaction: AcpTransaction,
  {
    request,
    permission,
    requester,
  }: { request: ReceivedRequest; permission: Permission; requester: Requester | null },
  timeout_ms: number | null,
  routing: ReviewRouting,
): Promise<void> {
  const { tx, agent, session, now, core } = transaction;
  const { options } = permission;
  const id = transaction.reviewId(request.number);
  const expires_at = timeout_ms === null ? null : now + timeout_ms;
  const first = firstRoute(await routing.participants(tx, agent), agent, core.actor_calls);
  await insertReview(tx, {
    id,
    agent_num: agent.num,
    session_num: session.num,
    request_id: JSON.stringify(request.id),
    subagent: requester && transaction.redactJson(JSON.stringify(requester)),
    tool_call: transaction.redactJson(await storedToolCall(transaction, permission)),
    // The ids are not redacted, because they are sent back to the agent unchanged.
    options: JSON.stringify(options.map((option) => ({ ...option, name: transaction.redact(option.name) }))),
    status: 'pending',
    ...first,
    route: first.routed_to === null ? 'human' : 'leader',
    created_at: now,
    expires_at,
  });
  if (expires_at !== null) await core.timers.set(tx, 'review_deadline', id, expires_at, {});
  if (first.routed_to !== null) await awaitLeader(core, routing, tx, (await findReview(tx, id))!);
  await core.facts.record(tx, 'review_opened', id, { review_id: id, agent_id: agent.id });
  transaction.publishAtEnd();
  await publishReview(core, tx, id);
}

/** As JSON. In full, unless the session's pending reviews are already so large that lists of them would be too large. */
async function storedToolCall(
  { tx, agent, session }: AcpTransaction,
  { tool_call }: Permission,
): Promise<string> {
  const json = JSON.stringify(tool_call);
  if (json.length <= limits.short_tool_call_chars_max) return json;
  const chars = json.length + (await pendingToolCallChars(tx, agent.num, session.num));
  return chars <= limits.pending_tool_calls_chars_max ? json : shortened(tool_call);
}

function shortened(tool_call: Permission['tool_call']): string {
  return JSON.stringify(shortenToolCall(tool_call, limits.short_tool_call_chars_max));
}

/**
 * Ends a review that nobody answered. Nobody has to decide any more, so it no longer needs all of the tool call. See
 * `closeReview`.
 */
export async function closeUnanswered(
  core: AgentCore,
  tx: Tx,
  row: ReviewRow,
  changes: Parameters<typeof updateReview>[2],
): Promise<void> {
  const { tool_call } = row;
  const is_long = tool_call.length > limits.short_tool_call_chars_max;
  const short = is_long && { tool_call: shortened(JSON.parse(tool_call)) };
  await closeReview(core, tx, row, { ...changes, ...short });
}

/** Ends a review in the caller's transaction, and publishes it. */
export async function closeReview(
  core: AgentCore,
  tx: Tx,
  row: ReviewRow,
  changes: Parameters<typeof updateReview>[2],
): Promise<void> {
  await updateReview(tx, row.num, { answered_at: core.clock.now(), ...changes });
  await core.timers.clear(tx, 'review_deadline', row.id);
  await core.timers.clear(tx, 'review_to_humans', row.id);
  await core.facts.record(tx, 'review_closed', row.id, { review_id: row.id });
  await publishReview(core, tx, row.id);
}

/** Publishes the current review on the fleet feed. */
export async function publishReview(core: AgentCore, tx: Tx, id: string): Promise<void> {
  const row = (await findReview(tx, id))!;
  await core.feed.append(tx, 'review', row.owner_id, { ...toReview(row) }, row.team_num, row.agent_id);
}
