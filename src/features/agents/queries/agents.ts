/** SQL for agents, sessions and spools. The rules are in the service. */
import { type ExpressionBuilder, type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../../../base/clock.ts';
import type { View } from '../../../core/policy.ts';
import type { Session } from '../../../core/session.ts';
import { containsWord, hasJsonProperty } from '../../../store/dialects.ts';
import { createSpools, spoolsOf } from '../../../store/event-rows/spools.ts';
import { preparedInsert, preparedQuery, preparedUpdate } from '../../../store/prepared-query.ts';
import type { Reader, Tx } from '../../../store/store.ts';
import type { Tables } from '../../../store/tables.ts';
import { idsOfUser } from '../../../store/users.ts';
import { agentInView } from '../../../store/views.ts';
import { type Agent, type AgentStatus, agentNeed, type Progress, type Summary } from '../rules.ts';

export type AgentRow = Selectable<Tables['agents']> & {
  last_seq: number | null;
  session_state: Tables['sessions']['state'] | null;
  stopped_by_run: Tables['sessions']['stopped_by_run'];
  /** When the newest event was written; null before the first. */
  last_event_at: number | null;
  pending_reviews: number | null;
  pending_elicitations: number | null;
  pending_questions: number | null;
  /** When the restart policy starts it again; null if it does not. */
  restart_at: number | null;
  team_id: string | null;
  run_id: string | null;
};
export type SessionRow = Selectable<Tables['sessions']> & { agent_id: string };

export function agentQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('agents')
    .leftJoin('heads', 'heads.agent_num', 'agents.num')
    .leftJoin('sessions', 'sessions.id', 'agents.session_id')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .leftJoin('runs', 'runs.num', 'agents.run_num')
    .selectAll('agents')
    .select(['heads.last_seq', 'sessions.state as session_state', 'sessions.stopped_by_run'])
    .select(['teams.id as team_id', 'runs.id as run_id'])
    .select((eb) => [
      lastEventTime(eb).as('last_event_at'),
      pendingReviews(eb).as('pending_reviews'),
      pendingElicitations(eb).as('pending_elicitations'),
      pendingQuestions(eb).as('pending_questions'),
      restartTime(eb).as('restart_at'),
    ]);
}

function restartTime(eb: ExpressionBuilder<Tables, 'agents'>) {
  return eb
    .selectFrom('timers')
    .select('timers.due_at')
    .where('timers.kind', '=', sql.lit('agent_restart'))
    .whereRef('timers.ref', '=', 'agents.id');
}

/** When the newest event of an agent's log was written, in Unix milliseconds; null before the first. */
export function lastEventTime(eb: ExpressionBuilder<Tables, 'agents'>) {
  return eb
    .selectFrom('events')
    .select('events.ts')
    .whereRef('events.agent_num', '=', 'agents.num')
    .orderBy('events.seq', 'desc')
    .limit(1);
}

function pendingReviews(eb: ExpressionBuilder<Tables, 'agents'>) {
  return eb
    .selectFrom('reviews')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .whereRef('reviews.agent_num', '=', 'agents.num')
    .where('reviews.status', '=', sql.lit('pending'));
}

function pendingElicitations(eb: ExpressionBuilder<Tables, 'agents'>) {
  return eb
    .selectFrom('elicitations')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .whereRef('elicitations.agent_num', '=', 'agents.num')
    .where('elicitations.status', '=', sql.lit('pending'));
}

/** The waiting steps whose current attempt is the agent's. */
function pendingQuestions(eb: ExpressionBuilder<Tables, 'agents'>) {
  return eb
    .selectFrom('run_attempts')
    .innerJoin('runs as waiting_runs', (join) =>
      join
        .onRef('waiting_runs.num', '=', 'run_attempts.run_num')
        .onRef('waiting_runs.attempt', '=', 'run_attempts.run_attempt'),
    )
    .innerJoin('run_steps', (join) =>
      join
        .onRef('run_steps.run_num', '=', 'run_attempts.run_num')
        .onRef('run_steps.step_key', '=', 'run_attempts.step_key')
        .onRef('run_steps.attempt', '=', 'run_attempts.attempt'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .whereRef('run_attempts.agent_id', '=', 'agents.id')
    .where('run_steps.waiting_since', 'is not', null);
}

const agentById = preparedQuery((sql, id: string) => agentQuery(sql).where('agents.id', '=', id));

export async function findAgent(reader: Reader, id: string): Promise<AgentRow | undefined> {
  return (await reader.get(agentById(reader, id))) as AgentRow | undefined;
}

/** How many agents were recovered from a remote node and still exist. */
export async function countRecovered(reader: Reader, node_id: string): Promise<number> {
  const query = reader.sql.selectFrom('agents').select((fn) => fn.fn.countAll<number>().as('agents'));
  return (await reader.get(query.where('recovered_from', '=', node_id)))!.agents;
}

/** The agents for which this worktree was created: one, or all agents of a member in one run. */
export async function agentsOfWorktree(
  reader: Reader,
  node_id: string,
  workdir: string,
): Promise<AgentRow[]> {
  return (await reader.all(
    agentQuery(reader.sql)
      .where('agents.node_id', '=', node_id)
      .where('agents.workdir', '=', workdir)
      .where('agents.worktree_mode', '=', 'create_worktree'),
  )) as AgentRow[];
}

/** The agents that use this existing folder. `path`: a real path. Agents whose workdir is a symbolic link are not found. */
export async function agentsInFolder(reader: Reader, node_id: string, path: string): Promise<AgentRow[]> {
  return (await reader.all(
    agentQuery(reader.sql)
      .where('agents.node_id', '=', node_id)
      .where(sql<boolean>`rtrim(agents.workdir, '/') = ${path}`)
      .where('agents.worktree_mode', '=', 'use_existing'),
  )) as AgentRow[];
}

/** The agents whose restarts the last plane did not complete. */
export async function interruptedRestarts(reader: Reader): Promise<AgentRow[]> {
  return (await reader.all(
    agentQuery(reader.sql)
      .where('agents.pending', 'is', null)
      .where('agents.pending_request', 'is not', null),
  )) as AgentRow[];
}

export async function ownsAgents(reader: Reader, user_id: string): Promise<boolean> {
  const agents = reader.sql.selectFrom('agents').select('id').where('owner_id', '=', user_id);
  return (await reader.get(agents.limit(1))) !== undefined;
}

const placeInTeam = preparedQuery((sql, num: number) =>
  sql
    .selectFrom('agents')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .select(['owner_id', 'team_num', 'run_num', 'member_id', 'teams.id as team_id'])
    .where('agents.num', '=', num),
);

/** The owner of an agent and, for a team member, its place in the team. */
export function partOfTeam(reader: Reader, num: number) {
  return reader.get(placeInTeam(reader, num));
}

/** Ids of a node's agents that are marked stale. */
export async function staleAgents(reader: Reader, node_id: string): Promise<string[]> {
  const stale = reader.sql.selectFrom('agents').select('id').where('node_id', '=', node_id);
  return (await reader.all(stale.where('stale_since', 'is not', null))).map(({ id }) => id);
}

/** Ids of a node's agents that have a live session and are not marked stale. */
export async function agentsToMarkStale(reader: Reader, node_id: string): Promise<string[]> {
  const live = reader.sql.selectFrom('sessions').select('id').where('state', '<>', 'ended');
  const agents = reader.sql
    .selectFrom('agents')
    .select('id')
    .where('node_id', '=', node_id)
    .where('stale_since', 'is', null)
    .where('session_id', 'in', live);
  return (await reader.all(agents)).map(({ id }) => id);
}

/** Ids of all agents with a live session. */
export async function liveAgentIds(reader: Reader): Promise<string[]> {
  const live = reader.sql.selectFrom('sessions').select('id').where('state', '<>', 'ended');
  const agents = reader.sql.selectFrom('agents').select('id').where('session_id', 'in', live).orderBy('num');
  return (await reader.all(agents)).map(({ id }) => id);
}

/** Ids of all agents that the restart policy will start again. */
export async function restartingAgentIds(reader: Reader): Promise<string[]> {
  const timers = reader.sql.selectFrom('timers').select('ref').where('kind', '=', 'agent_restart');
  return (await reader.all(timers)).map(({ ref }) => ref);
}

/** The running agent of a run's member. If an earlier one is still running too, the newest. */
export async function runningMember(
  reader: Reader,
  run_num: number,
  member_id: string,
): Promise<AgentRow | undefined> {
  return (await reader.get(
    agentQuery(reader.sql)
      .where('agents.run_num', '=', run_num)
      .where('agents.member_id', '=', member_id)
      .where('agents.status', '=', 'running')
      .orderBy('agents.num', 'desc')
      .limit(1),
  )) as AgentRow | undefined;
}

export interface AgentFilter {
  view: View;
  status?: AgentStatus | undefined;
  node_id?: string | undefined;
  name?: string | undefined;
  /** Labels that the agent must all have. */
  labels?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Username or id. */
  owner?: string | undefined;
  team_id?: string | undefined;
  run_id?: string | undefined;
  repo?: string | undefined;
  archived?: boolean | undefined;
  /** Words that must all occur in the id, name, command, workdir or labels. Case does not matter. */
  words?: readonly string[] | undefined;
  /** Agents older than this one (by `num`). */
  before_num?: number | undefined;
  limit?: number | undefined;
}

/** What a search for words looks at. */
const searched = sql<string>`agents.id || ${sql.lit('\n')} || agents.name || ${sql.lit('\n')} || agents.command || ${sql.lit('\n')} || agents.workdir || ${sql.lit('\n')} || agents.labels`;

/** Newest first. */
export async function listAgents(reader: Reader, filter: AgentFilter): Promise<AgentRow[]> {
  let query = agentQuery(reader.sql).where(agentInView(reader, filter.view)).orderBy('agents.num', 'desc');
  if (filter.status !== undefined) query = query.where('agents.status', '=', filter.status);
  if (filter.node_id !== undefined) query = query.where('agents.node_id', '=', filter.node_id);
  if (filter.name !== undefined) query = query.where('agents.name', '=', filter.name);
  if (filter.team_id !== undefined) query = query.where('teams.id', '=', filter.team_id);
  if (filter.run_id !== undefined) query = query.where('runs.id', '=', filter.run_id);
  if (filter.repo !== undefined) query = query.where('agents.worktree_repo', '=', filter.repo);
  if (filter.archived !== undefined)
    query = query.where('agents.archived_at', filter.archived ? 'is not' : 'is', null);
  if (filter.owner !== undefined)
    query = query.where('agents.owner_id', 'in', idsOfUser(reader, filter.owner));
  for (const [name, value] of filter.labels ?? []) {
    query = query.where(hasJsonProperty(reader, 'agents.labels', name, value));
  }
  for (const word of filter.words ?? []) {
    query = query.where(containsWord(reader, searched, word));
  }
  if (filter.before_num !== undefined) query = query.where('agents.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return (await reader.all(query)) as AgentRow[];
}

/**
 * How many other agents in the view have the same owner and exactly the same name and are not archived, and the ids of the
 * newest, at most `limit`.
 */
export async function findNamesakes(
  reader: Reader,
  { id, owner_id, name }: Pick<Agent, 'id' | 'owner_id' | 'name'>,
  view: View,
  limit: number,
): Promise<{ ids: string[]; count: number }> {
  const query = reader.sql
    .selectFrom('agents')
    .where('owner_id', '=', owner_id)
    .where('name', '=', name)
    .where('id', '!=', id)
    .where('archived_at', 'is', null)
    .where(agentInView(reader, view));
  const newest = await reader.all(query.select('id').orderBy('num', 'desc').limit(limit));
  const counted = await reader.get(query.select(({ fn }) => fn.countAll<number>().as('count')));
  return { ids: newest.map((row) => row.id), count: counted!.count };
}

/** A user's agents of exactly this name, newest first. */
export async function agentsNamed(reader: Reader, owner_id: string, name: string): Promise<AgentRow[]> {
  return (await reader.all(
    agentQuery(reader.sql)
      .where('agents.owner_id', '=', owner_id)
      .where('agents.name', '=', name)
      .orderBy('agents.num', 'desc'),
  )) as AgentRow[];
}

const newAgent = preparedInsert('agents', 'num');
const changedAgent = preparedUpdate('agents', 'num', 'updated_at');

/** Returns the new row's `num`. */
export async function insertAgent(tx: Tx, row: Insertable<Tables['agents']>): Promise<number> {
  return (await tx.get(newAgent(tx, row)))!.num;
}

/**
 * `updated_at` never goes back, even if the clock does, for example after a takeover by another machine: clients order the
 * states of an agent by it.
 */
export function updateAgent(tx: Tx, num: number, changes: Updateable<Tables['agents']>): void {
  tx.queue(changedAgent(tx, changes, num));
}

export async function deleteAgent(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('agents').where('num', '=', num));
}

export function toAgent(row: AgentRow, now_ms: number, quiet_after_ms: number): Agent {
  const waits = {
    pending_reviews: row.pending_reviews ?? 0,
    pending_elicitations: row.pending_elicitations ?? 0,
    pending_questions: row.pending_questions ?? 0,
    sign_in_since: rfc3339OrNull(row.sign_in_since),
  };
  return {
    id: row.id,
    name: row.name,
    workdir: row.workdir,
    command: row.command,
    argv: row.argv === null ? null : JSON.parse(row.argv),
    protocol: row.protocol,
    preset: row.preset,
    permission_mode: row.permission_mode,
    asks: row.asks,
    worktree_mode: row.worktree_mode,
    worktree_repo: row.worktree_repo,
    worktree_ref: row.worktree_ref,
    worktree_branch: row.worktree_branch,
    node_id: row.node_id,
    owner_id: row.owner_id,
    status: row.status,
    activity: activity(row, now_ms, quiet_after_ms),
    stopped_by_run: row.status === 'cancelled' ? row.stopped_by_run : null,
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    reason: row.reason,
    session_id: row.session_id,
    session_count: row.session_count,
    labels: JSON.parse(row.labels),
    env_keys: Object.keys(JSON.parse(row.env)),
    restart_policy: row.restart_policy,
    restart_at: rfc3339OrNull(row.restart_at),
    team_id: row.team_id,
    run_id: row.run_id,
    member_id: row.member_id,
    ...waits,
    needs_you: agentNeed(waits),
    summary: toSummary(row),
    last_seq: row.last_seq ?? 0,
    last_event_at: rfc3339OrNull(row.last_event_at),
    stale_since: rfc3339OrNull(row.stale_since),
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
    archived_at: rfc3339OrNull(row.archived_at),
    stdin: row.stdin === 1,
    on_exit: row.on_exit,
    leftovers: JSON.parse(row.leftovers),
    cleanup: row.cleanup,
    pending: row.pending,
  };
}

const nothing_reported: Progress = { now: null, plan: null, usage: null };

function toSummary({ progress, diff }: AgentRow): Summary {
  const { now, plan, usage } = progress === null ? nothing_reported : (JSON.parse(progress) as Progress);
  return { now, plan, diff: diff === null ? null : JSON.parse(diff), usage };
}

/** Silence is only a label: an agent without output for `quiet_after_ms` is `quiet`, but keeps running. */
export function activity(row: AgentRow, now_ms: number, quiet_after_ms: number): Agent['activity'] {
  if (row.status !== 'running') return row.session_state === 'starting' ? 'starting' : null;
  if (row.activity !== null && row.activity !== 'working') return row.activity;
  return now_ms - (row.last_event_at ?? row.started_at ?? now_ms) > quiet_after_ms ? 'quiet' : 'working';
}

function sessionQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('sessions')
    .innerJoin('agents', 'agents.num', 'sessions.agent_num')
    .selectAll('sessions')
    .select('agents.id as agent_id');
}

const sessionById = preparedQuery((sql, id: string) => sessionQuery(sql).where('sessions.id', '=', id));

export function findSession(reader: Reader, id: string): Promise<SessionRow | undefined> {
  return reader.get(sessionById(reader, id));
}

const acpSessionById = preparedQuery((sql, id: string) =>
  sessionQuery(sql)
    .leftJoin('acp_states', 'acp_states.session_num', 'sessions.num')
    .select(['agents.preset', 'agents.permission_mode', 'agents.asks', 'agents.activity'])
    .select(['agents.sign_in_since', 'agents.progress'])
    .select(['agents.acp_session_id', 'agents.workdir', 'agents.stale_since'])
    .select(['agents.team_num', 'agents.run_num', 'agents.member_id', 'acp_states.state as acp_state'])
    .where('sessions.id', '=', id),
);

/** A session with the columns of its agent that a transaction over its messages needs, and its stored state as text. */
export type AcpSessionRow = NonNullable<Awaited<ReturnType<typeof findAcpSession>>>;

/**
 * One statement, because every message needs all of it. Three statements, with columns of the agent that are computed from
 * its log, took a seventh more processor time per message.
 */
export function findAcpSession(reader: Reader, id: string) {
  return reader.get(acpSessionById(reader, id));
}

/** Sessions of a node that are not known to have ended. */
export function liveSessions(reader: Reader, node_id: string): Promise<SessionRow[]> {
  return reader.all(
    sessionQuery(reader.sql).where('sessions.node_id', '=', node_id).where('sessions.state', '<>', 'ended'),
  );
}

/** Newest first. */
export function listSessions(
  reader: Reader,
  agent_num: number,
  page: { before_number?: number | undefined; limit?: number | undefined } = {},
): Promise<SessionRow[]> {
  let query = sessionQuery(reader.sql).where('agent_num', '=', agent_num).orderBy('number', 'desc');
  if (page.before_number !== undefined) query = query.where('number', '<', page.before_number);
  if (page.limit !== undefined) query = query.limit(page.limit);
  return reader.all(query);
}

const newSession = preparedInsert('sessions', 'num');
const changedSession = preparedUpdate('sessions', 'num');

/** Inserts a session with both spools at offset 0. Returns its `num`. */
export async function insertSession(tx: Tx, row: Insertable<Tables['sessions']>): Promise<number> {
  const num = (await tx.get(newSession(tx, row)))!.num;
  await createSpools(tx, num);
  return num;
}

export function updateSession(tx: Tx, num: number, changes: Updateable<Tables['sessions']>): void {
  tx.queue(changedSession(tx, changes, num));
}

export async function deleteSession(tx: Tx, num: number): Promise<void> {
  await tx.run(tx.sql.deleteFrom('sessions').where('num', '=', num));
}

export async function toSession(reader: Reader, row: SessionRow): Promise<Session> {
  const spools = await spoolsOf(reader, row.num);
  return {
    id: row.id,
    agent_id: row.agent_id,
    node_id: row.node_id,
    number: row.number,
    state: row.state,
    pid: row.pid,
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    reason: row.reason,
    cleanup: row.cleanup,
    created_at: rfc3339(row.created_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
    stdout_bytes: spools.stdout.offset,
    stderr_bytes: spools.stderr.offset,
  };
}
