/** SQL for permission reviews. The rules are in `features/reviews/service.ts`. */
import { type Insertable, type Kysely, type Selectable, sql as sqlText, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { preparedInsert, preparedQuery, preparedUpdate } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { agentInView } from '../../store/views.ts';
import type { AgentRequestFilter } from './agent-requests.ts';
import type { Review, ReviewStatus } from './rules.ts';

export type ReviewRow = Selectable<Tables['reviews']> & {
  agent_id: string;
  owner_id: string;
  session_id: string;
  /** Null unless the agent is a team member. */
  team_num: number | null;
  run_num: number | null;
  member_id: string | null;
  team_id: string | null;
  run_id: string | null;
};

function reviewQuery(reader: Reader) {
  return reader.sql
    .selectFrom('reviews')
    .innerJoin('agents', 'agents.num', 'reviews.agent_num')
    .innerJoin('sessions', 'sessions.num', 'reviews.session_num')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .leftJoin('runs', 'runs.num', 'agents.run_num')
    .selectAll('reviews')
    .select(['agents.id as agent_id', 'agents.owner_id', 'sessions.id as session_id'])
    .select(['agents.team_num', 'agents.run_num', 'agents.member_id'])
    .select(['teams.id as team_id', 'runs.id as run_id']);
}

const newReview = preparedInsert('reviews');
const changedReview = preparedUpdate('reviews', 'num');

export async function insertReview(tx: Tx, row: Insertable<Tables['reviews']>): Promise<void> {
  await tx.run(newReview(tx, row));
}

export async function updateReview(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['reviews']>,
): Promise<void> {
  await tx.run(changedReview(tx, changes, num));
}

export function findReview(reader: Reader, id: string): Promise<ReviewRow | undefined> {
  return reader.get(reviewQuery(reader).where('reviews.id', '=', id));
}

export interface ReviewFilter extends AgentRequestFilter<ReviewStatus> {
  /** Only reviews that were routed to this actor. */
  routed_to?: string | undefined;
}

/** Newest first. */
export function listReviews(reader: Reader, filter: ReviewFilter): Promise<ReviewRow[]> {
  let query = reviewQuery(reader).orderBy('reviews.num', 'desc');
  if (filter.view !== undefined) query = query.where(agentInView(reader, filter.view));
  if (filter.routed_to !== undefined) query = query.where('reviews.routed_to', '=', filter.routed_to);
  if (filter.status !== undefined) query = query.where('reviews.status', '=', filter.status);
  if (filter.agent_id !== undefined) query = query.where('agents.id', '=', filter.agent_id);
  if (filter.before_num !== undefined) query = query.where('reviews.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query);
}

/** Pending reviews of one session, oldest first. `request_id`: only those of the request, whose id is JSON. */
export function pendingReviews(
  reader: Reader,
  agent_num: number,
  session_num: number,
  request_id?: string,
): Promise<ReviewRow[]> {
  let query = reviewQuery(reader)
    .where('reviews.agent_num', '=', agent_num)
    .where('reviews.session_num', '=', session_num)
    // A literal, because the partial index of pending reviews covers only this.
    .where('reviews.status', '=', sqlText.lit('pending'))
    .orderBy('reviews.num');
  if (request_id !== undefined) query = query.where('reviews.request_id', '=', request_id);
  return reader.all(query);
}

const pendingOfSession = (sql: Kysely<Tables>, agent_num: number, session_num: number) =>
  sql
    .selectFrom('reviews')
    .where('agent_num', '=', agent_num)
    .where('session_num', '=', session_num)
    .where('status', '=', sqlText.lit('pending'));

const onePending = preparedQuery((sql, agent_num: number, session_num: number) =>
  pendingOfSession(sql, agent_num, session_num).select('num').limit(1),
);

/** Whether any review of the session is pending. Runs with every message of an agent. */
export async function hasPendingReview(
  reader: Reader,
  agent_num: number,
  session_num: number,
): Promise<boolean> {
  return (await reader.get(onePending(reader, agent_num, session_num))) !== undefined;
}

/** Total length of the tool calls of the session's pending reviews. */
export async function pendingToolCallChars(
  reader: Reader,
  agent_num: number,
  session_num: number,
): Promise<number> {
  const lengths = pendingOfSession(reader.sql, agent_num, session_num).select(
    sqlText<number>`length(tool_call)`.as('chars'),
  );
  return (await reader.all(lengths)).reduce((sum, { chars }) => sum + chars, 0);
}

/** Deletes the agent's requests that ended without an answer of anyone, except for the newest `keep`. */
export async function deleteUnansweredRequests(
  tx: Tx,
  table: 'reviews' | 'elicitations',
  agent_num: number,
  keep: number,
): Promise<void> {
  const unanswered = tx.sql
    .selectFrom(table)
    .select('num')
    .where('agent_num', '=', agent_num)
    .where('status', 'in', ['cancelled', 'expired'])
    .where('answered_by', 'is', null)
    .where(({ or, eb }) => or([eb('delivery', 'is', null), eb('delivery', '<>', 'queued')]));
  const newest = await tx.get(unanswered.orderBy('num', 'desc').limit(1).offset(keep));
  if (!newest) return;
  await tx.run(tx.sql.deleteFrom(table).where('num', 'in', unanswered.where('num', '<=', newest.num)));
}

/** Answers of one session that are not delivered yet. */
export function queuedReviews(reader: Reader, session_num: number): Promise<ReviewRow[]> {
  return reader.all(
    reviewQuery(reader).where('reviews.session_num', '=', session_num).where('delivery', '=', 'queued'),
  );
}

export function toReview(row: ReviewRow): Review {
  return {
    id: row.id,
    agent_id: row.agent_id,
    session_id: row.session_id,
    team_id: row.team_id,
    run_id: row.run_id,
    origin_actor_id: row.origin_actor_id,
    route: row.route,
    routed_to: row.routed_to,
    subagent: row.subagent === null ? null : JSON.parse(row.subagent),
    tool_call: JSON.parse(row.tool_call),
    options: JSON.parse(row.options),
    status: row.status,
    decision: row.decision,
    option_id: row.option_id,
    answered_by: row.answered_by,
    delivery: row.delivery,
    created_at: rfc3339(row.created_at),
    answered_at: rfc3339OrNull(row.answered_at),
    expires_at: rfc3339OrNull(row.expires_at),
  };
}

/** Changes the actor id of the person to whom reviews are routed. */
export async function renameInReviews(tx: Tx, from: string, to: string): Promise<void> {
  await tx.run(tx.sql.updateTable('reviews').set({ routed_to: to }).where('routed_to', '=', from));
}
