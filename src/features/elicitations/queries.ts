/** Queries about elicitations. Rules are in `features/elicitations/service.ts`. */
import { type Insertable, type Selectable, sql as sqlText, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../base/clock.ts';
import { preparedQuery } from '../../store/prepared-query.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { agentInView } from '../../store/views.ts';
import { memberActorId } from '../actors/rules/actor.ts';
import type { AgentRequestFilter } from '../reviews/agent-requests.ts';
import type { Elicitation, ElicitationForm, ElicitationStatus } from './rules.ts';

export type ElicitationRow = Selectable<Tables['elicitations']> & {
  agent_id: string;
  owner_id: string;
  session_id: string;
  /** Null unless the agent is a team member. */
  team_num: number | null;
  member_id: string | null;
  team_id: string | null;
  run_id: string | null;
};

function elicitationQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('elicitations')
    .innerJoin('agents', 'agents.num', 'elicitations.agent_num')
    .innerJoin('sessions', 'sessions.num', 'elicitations.session_num')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .leftJoin('runs', 'runs.num', 'agents.run_num')
    .selectAll('elicitations')
    .select(['agents.id as agent_id', 'agents.owner_id', 'sessions.id as session_id'])
    .select(['agents.team_num', 'agents.member_id', 'teams.id as team_id', 'runs.id as run_id']);
}

export async function insertElicitation(tx: Tx, row: Insertable<Tables['elicitations']>): Promise<void> {
  await tx.run(tx.sql.insertInto('elicitations').values(row));
}

export async function updateElicitation(
  tx: Tx,
  num: number,
  changes: Updateable<Tables['elicitations']>,
): Promise<void> {
  await tx.run(tx.sql.updateTable('elicitations').set(changes).where('num', '=', num));
}

export function findElicitation(reader: Reader, id: string): Promise<ElicitationRow | undefined> {
  return reader.get(elicitationQuery(reader.sql).where('elicitations.id', '=', id));
}

export type ElicitationFilter = AgentRequestFilter<ElicitationStatus>;

/** Newest first. */
export function listElicitations(reader: Reader, filter: ElicitationFilter): Promise<ElicitationRow[]> {
  let query = elicitationQuery(reader.sql).orderBy('elicitations.num', 'desc');
  if (filter.view !== undefined) query = query.where(agentInView(reader, filter.view));
  if (filter.status !== undefined) query = query.where('elicitations.status', '=', filter.status);
  if (filter.agent_id !== undefined) query = query.where('agents.id', '=', filter.agent_id);
  if (filter.before_num !== undefined) query = query.where('elicitations.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query);
}

const onePending = preparedQuery((sql, agent_num: number, session_num: number) =>
  sql
    .selectFrom('elicitations')
    .select('num')
    .where('agent_num', '=', agent_num)
    .where('session_num', '=', session_num)
    .where('status', '=', sqlText.lit('pending'))
    .limit(1),
);

/** Whether any elicitation of the session is pending. Runs with every message of an agent. */
export async function hasPendingElicitation(
  reader: Reader,
  agent_num: number,
  session_num: number,
): Promise<boolean> {
  return (await reader.get(onePending(reader, agent_num, session_num))) !== undefined;
}

/** Pending elicitations of one session, oldest first. `request_id`: only those of the request, whose id is JSON. */
export function pendingElicitations(
  reader: Reader,
  agent_num: number,
  session_num: number,
  request_id?: string,
): Promise<ElicitationRow[]> {
  let query = elicitationQuery(reader.sql)
    .where('elicitations.agent_num', '=', agent_num)
    .where('elicitations.session_num', '=', session_num)
    // A literal, because the partial index of pending elicitations covers only this.
    .where('elicitations.status', '=', sqlText.lit('pending'))
    .orderBy('elicitations.num');
  if (request_id !== undefined) query = query.where('elicitations.request_id', '=', request_id);
  return reader.all(query);
}

/** Answers of one session that are not delivered yet. */
export function queuedElicitations(reader: Reader, session_num: number): Promise<ElicitationRow[]> {
  return reader.all(
    elicitationQuery(reader.sql)
      .where('elicitations.session_num', '=', session_num)
      .where('delivery', '=', 'queued'),
  );
}

/** The elicitations of a session with this id of the agent that the agent has not reported as complete. */
export function incompleteElicitations(
  reader: Reader,
  session_num: number,
  acp_id: string,
): Promise<ElicitationRow[]> {
  return reader.all(
    elicitationQuery(reader.sql)
      .where('elicitations.session_num', '=', session_num)
      .where('elicitations.acp_id', '=', acp_id)
      .where('elicitations.completed_at', 'is', null),
  );
}

export function parseForm(row: Pick<ElicitationRow, 'form'>): ElicitationForm | null {
  return row.form === null ? null : (JSON.parse(row.form) as ElicitationForm);
}

export function toElicitation(row: ElicitationRow): Elicitation {
  const { member_id, team_id } = row;
  return {
    id: row.id,
    agent_id: row.agent_id,
    session_id: row.session_id,
    team_id,
    run_id: row.run_id,
    origin_actor_id: member_id === null || team_id === null ? null : memberActorId(member_id, team_id),
    mode: row.mode,
    message: row.message,
    form: parseForm(row),
    url: row.url,
    tool_call_id: row.tool_call_id,
    status: row.status,
    answered_by: row.answered_by,
    delivery: row.delivery,
    created_at: rfc3339(row.created_at),
    answered_at: rfc3339OrNull(row.answered_at),
    completed_at: rfc3339OrNull(row.completed_at),
    expires_at: rfc3339OrNull(row.expires_at),
  };
}
