/** Queries about agents and their sessions: rows in, rows and records out. Rules stand in `services/agents/`. */
import { type ExpressionBuilder, type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { rfc3339, rfc3339OrNull } from '../base/clock.ts';
import type { Agent } from '../domain/agent.ts';
import type { StreamName } from '../domain/event.ts';
import type { View } from '../domain/policy.ts';
import type { Cleanup, EndReason, Session } from '../domain/session.ts';
import { built } from './built.ts';
import { type Reader, StaleBatch, type Tx } from './store.ts';
import type { Tables } from './tables.ts';
import { agentInView } from './views.ts';

export type AgentRow = Selectable<Tables['agents']> & {
  last_seq: number | null;
  session_state: Tables['sessions']['state'] | null;
  /** When the newest event was written; null before the first. */
  last_event_at: number | null;
  pending_reviews: number | null;
  team_id: string | null;
  run_id: string | null;
};
export type SessionRow = Selectable<Tables['sessions']> & { agent_id: string };

export const streamNumbers = { stdout: 1, stderr: 2 } as const satisfies Record<StreamName, number>;

function agentQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('agents')
    .leftJoin('heads', 'heads.agent_num', 'agents.num')
    .leftJoin('sessions', 'sessions.id', 'agents.session_id')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .leftJoin('runs', 'runs.num', 'agents.run_num')
    .selectAll('agents')
    .select(['heads.last_seq', 'sessions.state as session_state', 'teams.id as team_id', 'runs.id as run_id'])
    .select((eb) => [lastEventAt(eb).as('last_event_at'), pendingReviews(eb).as('pending_reviews')]);
}

function lastEventAt(eb: ExpressionBuilder<Tables, 'agents'>) {
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

const agentById = built((sql, id: string) => agentQuery(sql).where('agents.id', '=', id));

export function findAgent(reader: Reader, id: string): AgentRow | undefined {
  return reader.get(agentById(reader, id)) as AgentRow | undefined;
}

/** Those that a folder was made for: one, or all of a member's in one run. */
export function agentsOfWorktree(reader: Reader, node_id: string, workdir: string): AgentRow[] {
  return reader.all(
    agentQuery(reader.sql)
      .where('agents.node_id', '=', node_id)
      .where('agents.workdir', '=', workdir)
      .where('agents.worktree_mode', '=', 'create_worktree'),
  ) as AgentRow[];
}

/** The running agent of a run's member; the newest, where one of before still runs. */
export function runningMember(reader: Reader, run_num: number, member_id: string): AgentRow | undefined {
  return reader.get(
    agentQuery(reader.sql)
      .where('agents.run_num', '=', run_num)
      .where('agents.member_id', '=', member_id)
      .where('agents.status', '=', 'running')
      .orderBy('agents.num', 'desc')
      .limit(1),
  ) as AgentRow | undefined;
}

export interface AgentFilter {
  view: View;
  status?: string | undefined;
  node_id?: string | undefined;
  name?: string | undefined;
  /** Each must be one of the agent's. */
  labels?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Username or id. */
  owner?: string | undefined;
  team_id?: string | undefined;
  repo?: string | undefined;
  /** Each must occur in the id, name, command, workdir or labels, in upper or lower case. */
  words?: readonly string[] | undefined;
  /** Agents older than this one (by `num`). */
  before_num?: number | undefined;
  limit?: number | undefined;
}

/** Of a run's agents those that have a session which is not over. */
export function liveAgentsOfRun(reader: Reader, run_num: number): AgentRow[] {
  return reader.all(
    agentQuery(reader.sql)
      .where('agents.run_num', '=', run_num)
      .where('sessions.state', '<>', 'ended')
      .orderBy('agents.num'),
  ) as AgentRow[];
}

/** Newest first. */
export function listAgents(reader: Reader, filter: AgentFilter): AgentRow[] {
  let query = agentQuery(reader.sql).where(agentInView(reader, filter.view)).orderBy('agents.num', 'desc');
  if (filter.status !== undefined) query = query.where('agents.status', '=', filter.status);
  if (filter.node_id !== undefined) query = query.where('agents.node_id', '=', filter.node_id);
  if (filter.name !== undefined) query = query.where('agents.name', '=', filter.name);
  if (filter.team_id !== undefined) query = query.where('teams.id', '=', filter.team_id);
  if (filter.repo !== undefined) query = query.where('agents.worktree_repo', '=', filter.repo);
  if (filter.owner !== undefined)
    query = query.where('agents.owner_id', 'in', usersNamed(reader, filter.owner));
  for (const [name, value] of filter.labels ?? []) {
    query = query.where(
      sql<boolean>`EXISTS (SELECT 1 FROM json_each(agents.labels) WHERE key = ${name} AND value = ${value})`,
    );
  }
  for (const word of filter.words ?? []) {
    const text = sql`lower(agents.id || char(10) || agents.name || char(10) || agents.command || char(10) || agents.workdir || char(10) || agents.labels)`;
    query = query.where(sql<boolean>`instr(${text}, lower(${word})) > 0`);
  }
  if (filter.before_num !== undefined) query = query.where('agents.num', '<', filter.before_num);
  if (filter.limit !== undefined) query = query.limit(filter.limit);
  return reader.all(query) as AgentRow[];
}

/** A user's agents of exactly this name, newest first. */
export function agentsNamed(reader: Reader, owner_id: string, name: string): AgentRow[] {
  return reader.all(
    agentQuery(reader.sql)
      .where('agents.owner_id', '=', owner_id)
      .where('agents.name', '=', name)
      .orderBy('agents.num', 'desc'),
  ) as AgentRow[];
}

function usersNamed(reader: Reader, owner: string) {
  return reader.sql
    .selectFrom('users')
    .select('id')
    .where(({ eb, or }) => or([eb('username', '=', owner), eb('id', '=', owner)]));
}

/** Answers the new row's `num`. */
export function insertAgent(tx: Tx, row: Insertable<Tables['agents']>): number {
  return tx.get(tx.sql.insertInto('agents').values(row).returning('num'))!.num;
}

export function updateAgent(tx: Tx, num: number, changes: Updateable<Tables['agents']>): void {
  tx.run(tx.sql.updateTable('agents').set(changes).where('num', '=', num));
}

export function deleteAgent(tx: Tx, num: number): void {
  tx.run(tx.sql.deleteFrom('agents').where('num', '=', num));
}

export function toAgent(row: AgentRow, now_ms: number, quiet_after_ms: number): Agent {
  return {
    id: row.id,
    name: row.name,
    workdir: row.workdir,
    command: row.command,
    argv: row.argv === null ? null : JSON.parse(row.argv),
    protocol: row.protocol as Agent['protocol'],
    preset: row.preset,
    permission_mode: row.permission_mode as Agent['permission_mode'],
    asks: row.asks as Agent['asks'],
    worktree_mode: row.worktree_mode as Agent['worktree_mode'],
    worktree_repo: row.worktree_repo,
    worktree_ref: row.worktree_ref,
    worktree_branch: row.worktree_branch,
    node_id: row.node_id,
    owner_id: row.owner_id,
    status: row.status as Agent['status'],
    activity: activity(row, now_ms, quiet_after_ms),
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    reason: row.reason,
    session_id: row.session_id,
    session_count: row.session_count,
    labels: JSON.parse(row.labels),
    env_keys: Object.keys(JSON.parse(row.env)),
    restart_policy: row.restart_policy as Agent['restart_policy'],
    team_id: row.team_id,
    run_id: row.run_id,
    member_id: row.member_id,
    pending_reviews: row.pending_reviews ?? 0,
    last_seq: row.last_seq ?? 0,
    last_event_at: rfc3339OrNull(row.last_event_at),
    stale_since: rfc3339OrNull(row.stale_since),
    created_at: rfc3339(row.created_at),
    updated_at: rfc3339(row.updated_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
    stdin: row.stdin === 1,
    on_exit: row.on_exit as Agent['on_exit'],
    leftovers: JSON.parse(row.leftovers),
    cleanup: row.cleanup as Agent['cleanup'],
    pending: row.pending as Agent['pending'],
  };
}

/** Silence is a label: an agent that says nothing for long is `quiet`, and runs on. */
function activity(row: AgentRow, now_ms: number, quiet_after_ms: number): Agent['activity'] {
  if (row.status !== 'running') return row.session_state === 'starting' ? 'starting' : null;
  if (row.activity !== null && row.activity !== 'working') return row.activity as Agent['activity'];
  return now_ms - (row.last_event_at ?? row.started_at ?? now_ms) > quiet_after_ms ? 'quiet' : 'working';
}

function sessionQuery(sql: Reader['sql']) {
  return sql
    .selectFrom('sessions')
    .innerJoin('agents', 'agents.num', 'sessions.agent_num')
    .selectAll('sessions')
    .select('agents.id as agent_id');
}

const sessionById = built((sql, id: string) => sessionQuery(sql).where('sessions.id', '=', id));

export function findSession(reader: Reader, id: string): SessionRow | undefined {
  return reader.get(sessionById(reader, id));
}

/** Sessions of a node that are not known to have ended. */
export function liveSessions(reader: Reader, node_id: string): SessionRow[] {
  return reader.all(
    sessionQuery(reader.sql).where('sessions.node_id', '=', node_id).where('sessions.state', '<>', 'ended'),
  );
}

/** Newest first. */
export function sessionsOf(
  reader: Reader,
  agent_num: number,
  page: { before_number?: number | undefined; limit?: number | undefined } = {},
): SessionRow[] {
  let query = sessionQuery(reader.sql).where('agent_num', '=', agent_num).orderBy('number', 'desc');
  if (page.before_number !== undefined) query = query.where('number', '<', page.before_number);
  if (page.limit !== undefined) query = query.limit(page.limit);
  return reader.all(query);
}

/** A session row with both of its spools at zero. */
export function insertSession(tx: Tx, row: Insertable<Tables['sessions']>): number {
  const num = tx.get(tx.sql.insertInto('sessions').values(row).returning('num'))!.num;
  for (const stream of Object.values(streamNumbers)) {
    tx.run(
      tx.sql.insertInto('spools').values({ session_num: num, stream, offset: 0, tail: new Uint8Array() }),
    );
  }
  return num;
}

export function updateSession(tx: Tx, num: number, changes: Updateable<Tables['sessions']>): void {
  tx.run(tx.sql.updateTable('sessions').set(changes).where('num', '=', num));
}

export function deleteSession(tx: Tx, num: number): void {
  tx.run(tx.sql.deleteFrom('sessions').where('num', '=', num));
}

export type SpoolRow = Selectable<Tables['spools']>;

const spoolsBySession = built((sql, session_num: number) =>
  sql.selectFrom('spools').selectAll().where('session_num', '=', session_num),
);

export function spoolsOf(reader: Reader, session_num: number): Record<StreamName, SpoolRow> {
  const rows = reader.all(spoolsBySession(reader, session_num));
  const pick = (stream: StreamName) => rows.find((row) => row.stream === streamNumbers[stream])!;
  return { stdout: pick('stdout'), stderr: pick('stderr') };
}

/** What the spool file holds from its beginning on goes on at the stream's present offset. */
export function rebaseSpool(tx: Tx, session_num: number, stream: StreamName): SpoolRow {
  return tx.get(
    tx.sql
      .updateTable('spools')
      .set((eb) => ({ base: eb.ref('offset'), tail: new Uint8Array() }))
      .where('session_num', '=', session_num)
      .where('stream', '=', streamNumbers[stream])
      .returningAll(),
  )!;
}

interface Move {
  from: number;
  to: number;
  tail: Uint8Array;
  output: number;
}

const spoolMove = built(
  (sql, session_num: number, stream: number, from: number, to: number, tail: Uint8Array, output: number) =>
    sql
      .updateTable('spools')
      .set({ offset: to, tail, output })
      .where('session_num', '=', session_num)
      .where('stream', '=', stream)
      .where('offset', '=', from),
);

/** Moves a committed offset. Throws `StaleBatch` when it is not where the bytes begin. */
export function moveSpool(
  tx: Tx,
  session_num: number,
  stream: StreamName,
  { from, to, tail, output }: Move,
): void {
  const move = spoolMove(tx, session_num, streamNumbers[stream], from, to, tail, output);
  if (tx.run(move).changes !== 1) throw new StaleBatch();
}

export function toSession(row: SessionRow, spools: Record<StreamName, SpoolRow>): Session {
  return {
    id: row.id,
    agent_id: row.agent_id,
    node_id: row.node_id,
    number: row.number,
    state: row.state,
    pid: row.pid,
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    reason: row.reason as EndReason | null,
    cleanup: row.cleanup as Cleanup | null,
    created_at: rfc3339(row.created_at),
    started_at: rfc3339OrNull(row.started_at),
    ended_at: rfc3339OrNull(row.ended_at),
    stdout_bytes: spools.stdout.offset,
    stderr_bytes: spools.stderr.offset,
  };
}
