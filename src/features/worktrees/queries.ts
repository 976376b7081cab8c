/** SQL for worktrees: rows of agents, and rows of kept worktrees. The rules are in the service. */
import {
  type Expression,
  expressionBuilder,
  type Insertable,
  type Selectable,
  type SqlBool,
  sql,
} from 'kysely';
import { rfc3339OrNull } from '../../base/clock.ts';
import type { View } from '../../core/policy.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Tables } from '../../store/tables.ts';
import { agentInView, teamsOf } from '../../store/views.ts';
import type { AgentStatus } from '../agents/rules.ts';
import type { WorktreeRecord, WorktreeState } from './rules.ts';

export type KeptRow = Selectable<Tables['kept_worktrees']> & { team_id: string | null };

export interface WorktreeFilter {
  view: View;
  state?: WorktreeState | undefined;
  node_id?: string | undefined;
  repo?: string | undefined;
  /** Worktrees of agents that are older than this one (by `num`). */
  before_num?: number | undefined;
  limit: number;
}

type ListedRow = Omit<WorktreeRecord, 'state' | 'kept_at' | 'diff'> & {
  num: number;
  kept_at: number | null;
  diff: string | null;
};

/** Newest first. */
export async function listWorktrees(reader: Reader, filter: WorktreeFilter): Promise<ListedRow[]> {
  const in_use = filter.state === 'kept' ? [] : await worktreesInUse(reader, filter);
  const kept = filter.state === 'in_use' ? [] : await keptWorktrees(reader, filter);
  return [...in_use, ...kept].sort((a, b) => b.num - a.num).slice(0, filter.limit);
}

function worktreesInUse(reader: Reader, filter: WorktreeFilter): Promise<ListedRow[]> {
  // The agents of a run's member share one worktree, which is listed once, with the newest of them.
  const newer = sql<boolean>`EXISTS (SELECT 1 FROM agents AS newer WHERE newer.run_num = agents.run_num
    AND newer.member_id = agents.member_id AND newer.workdir = agents.workdir AND newer.num > agents.num)`;
  let query = reader.sql
    .selectFrom('agents')
    .leftJoin('teams', 'teams.num', 'agents.team_num')
    .leftJoin('runs', 'runs.num', 'agents.run_num')
    .select(['agents.num', 'agents.id', 'agents.node_id', 'agents.workdir', 'agents.worktree_repo as repo'])
    .select([
      'agents.worktree_branch as branch',
      'agents.name as agent_name',
      'agents.status as agent_status',
    ])
    .select([
      'agents.owner_id',
      'teams.id as team_id',
      'runs.id as run_id',
      'agents.member_id',
      'agents.diff',
    ])
    .select([sql<null>`NULL`.as('reason'), sql<null>`NULL`.as('kept_at')])
    .where('agents.worktree_mode', '=', 'create_worktree')
    .where(agentInView(reader, filter.view))
    .where(sql<boolean>`NOT ${newer}`);
  if (filter.node_id !== undefined) query = query.where('agents.node_id', '=', filter.node_id);
  if (filter.repo !== undefined) query = query.where('agents.worktree_repo', '=', filter.repo);
  if (filter.before_num !== undefined) query = query.where('agents.num', '<', filter.before_num);
  return reader.all(query.orderBy('agents.num', 'desc').limit(filter.limit));
}

function keptWorktrees(reader: Reader, filter: WorktreeFilter): Promise<ListedRow[]> {
  let query = reader.sql
    .selectFrom('kept_worktrees as kept')
    .leftJoin('teams', 'teams.num', 'kept.team_num')
    .select(['kept.num', 'kept.agent_id as id', 'kept.node_id', 'kept.workdir', 'kept.repo', 'kept.branch'])
    .select(['kept.agent_name', sql<AgentStatus | null>`NULL`.as('agent_status'), 'kept.owner_id'])
    .select(['teams.id as team_id', 'kept.run_id', 'kept.member_id', 'kept.reason', 'kept.kept_at'])
    .select('kept.diff')
    .where(keptInView(reader, filter.view));
  if (filter.node_id !== undefined) query = query.where('kept.node_id', '=', filter.node_id);
  if (filter.repo !== undefined) query = query.where('kept.repo', '=', filter.repo);
  if (filter.before_num !== undefined) query = query.where('kept.num', '<', filter.before_num);
  return reader.all(query.orderBy('kept.num', 'desc').limit(filter.limit));
}

/** The condition of `agentInView` for the agents that the worktrees belonged to. */
function keptInView({ sql }: Pick<Reader, 'sql'>, { user_id, limits }: View): Expression<SqlBool> {
  const eb = expressionBuilder<{ kept: Tables['kept_worktrees'] }, 'kept'>();
  const conditions: Expression<SqlBool>[] = [];
  if (user_id !== null) {
    const own = eb.and([eb('kept.owner_id', '=', user_id), eb('kept.team_num', 'is', null)]);
    conditions.push(eb.or([own, eb('kept.team_num', 'in', teamsOf({ sql }, user_id))]));
  }
  if (limits !== null) {
    const teams = sql.selectFrom('teams').select('num').where('id', 'in', limits.team_ids);
    conditions.push(eb.or([eb('kept.agent_id', 'in', limits.agent_ids), eb('kept.team_num', 'in', teams)]));
  }
  return eb.and(conditions);
}

/** The kept worktree of a deleted agent. */
export async function findKept(reader: Reader, agent_id: string): Promise<KeptRow | undefined> {
  return (await reader.get(
    reader.sql
      .selectFrom('kept_worktrees')
      .leftJoin('teams', 'teams.num', 'kept_worktrees.team_num')
      .selectAll('kept_worktrees')
      .select('teams.id as team_id')
      .where('agent_id', '=', agent_id),
  )) as KeptRow | undefined;
}

/**
 * Replaces the row of an older agent for the same folder. Leaves that of a newer one, to which the folder belongs: the row's
 * agent is from a restored database then.
 */
export async function insertKept(tx: Tx, row: Insertable<Tables['kept_worktrees']>): Promise<void> {
  const { node_id, workdir, num } = row;
  const newer = tx.sql.selectFrom('kept_worktrees').select('num').where('num', '>', num);
  if (await tx.get(newer.where('node_id', '=', node_id).where('workdir', '=', workdir))) return;
  await deleteKeptAt(tx, node_id, workdir);
  await tx.run(tx.sql.insertInto('kept_worktrees').values(row));
}

export async function updateKeptReason(tx: Tx, agent_id: string, reason: string): Promise<void> {
  await tx.run(tx.sql.updateTable('kept_worktrees').set({ reason }).where('agent_id', '=', agent_id));
}

export async function deleteKept(tx: Tx, agent_id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('kept_worktrees').where('agent_id', '=', agent_id));
}

export async function deleteKeptAt(tx: Tx, node_id: string, workdir: string): Promise<void> {
  const rows = tx.sql.deleteFrom('kept_worktrees').where('node_id', '=', node_id);
  await tx.run(rows.where('workdir', '=', workdir));
}

/** Deletes the rows of a node that no longer exists. */
export async function deleteKeptOf(tx: Tx, node_id: string): Promise<void> {
  await tx.run(tx.sql.deleteFrom('kept_worktrees').where('node_id', '=', node_id));
}

export function toWorktree({ num: _, kept_at, diff, ...row }: ListedRow): WorktreeRecord {
  return {
    ...row,
    state: kept_at === null ? 'in_use' : 'kept',
    kept_at: rfc3339OrNull(kept_at),
    diff: diff === null ? null : JSON.parse(diff),
  };
}
