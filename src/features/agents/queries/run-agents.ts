/** SQL for the agents of runs. */
import type { Reader, Tx } from '../../../store/store.ts';
import type { RunEnd } from '../rules.ts';
import { type AgentRow, agentQuery } from './agents.ts';

/** The agents of a run, oldest first. */
export function agentsOfRun(reader: Reader, run_num: number) {
  return reader.all(
    reader.sql
      .selectFrom('agents')
      .leftJoin('sessions', 'sessions.id', 'agents.session_id')
      .select(['agents.id', 'agents.member_id', 'agents.node_id', 'agents.status', 'sessions.stopped_by_run'])
      .where('agents.run_num', '=', run_num)
      .orderBy('agents.num'),
  );
}

/** The oldest agent of a run's member. All of them share its worktree. */
export function firstAgentOfMember(reader: Reader, run_num: number, member_id: string) {
  return reader.get(
    reader.sql
      .selectFrom('agents')
      .select(['workdir', 'worktree_branch', 'worktree_base'])
      .where('run_num', '=', run_num)
      .where('member_id', '=', member_id)
      .orderBy('num')
      .limit(1),
  );
}

/**
 * Agents without a live session whose run ended before `before` (Unix ms) or was deleted, and that have not changed since
 * then. At most `limit` of each node, oldest first. `after`: by node, the number after which they begin.
 */
export async function expiredRunAgents(
  reader: Reader,
  before: number,
  limit: number,
  after: ReadonlyMap<string, number>,
): Promise<{ num: number; id: string; node_id: string }[]> {
  const nodes = reader.sql
    .selectFrom('agents')
    .select('node_id')
    .distinct()
    .where('member_id', 'is not', null);
  const expired: { num: number; id: string; node_id: string }[] = [];
  for (const { node_id } of await reader.all(nodes)) {
    const agents = reader.sql
      .selectFrom('agents')
      .leftJoin('runs', 'runs.num', 'agents.run_num')
      .leftJoin('sessions', 'sessions.id', 'agents.session_id')
      .select(['agents.num', 'agents.id', 'agents.node_id'])
      .where('agents.node_id', '=', node_id)
      .where('agents.num', '>', after.get(node_id) ?? 0)
      .where('agents.member_id', 'is not', null)
      .where('agents.updated_at', '<', before)
      .where('agents.archived_at', 'is', null)
      .where((eb) => eb.or([eb('agents.run_num', 'is', null), eb('runs.ended_at', '<', before)]))
      .where((eb) =>
        eb.or([eb('runs.status', 'is', null), eb('runs.status', 'in', ['completed', 'failed', 'cancelled'])]),
      )
      .where((eb) => eb.or([eb('sessions.state', 'is', null), eb('sessions.state', '=', 'ended')]))
      .orderBy('agents.num')
      .limit(limit);
    expired.push(...(await reader.all(agents)));
  }
  return expired;
}

/** The agents of a run that have a live session. */
export async function liveAgentsOfRun(reader: Reader, run_num: number): Promise<AgentRow[]> {
  return (await reader.all(
    agentQuery(reader.sql)
      .where('agents.run_num', '=', run_num)
      .where('sessions.state', '<>', 'ended')
      .orderBy('agents.num'),
  )) as AgentRow[];
}

/** Records that the end of a run stops its agents, except those that are already being stopped. */
export async function markStoppedByRun(tx: Tx, run_num: number, end: RunEnd): Promise<void> {
  const of_run = tx.sql.selectFrom('agents').select('session_id').where('run_num', '=', run_num);
  await tx.run(
    tx.sql
      .updateTable('sessions')
      .set({ stopped_by_run: end })
      .where('id', 'in', of_run.where('session_id', 'is not', null).$castTo<{ session_id: string }>())
      .where('state', '<>', 'ended')
      .where('stopping', '=', 0),
  );
}
