/**
 * Deletes runs that have ended, with their agents and worktrees, and the agents of runs that ended long ago. Worktrees with
 * unsaved work are kept. A deletion that is interrupted can be repeated: the run's record is deleted last.
 */
import { limits as sharedLimits } from '../../base/limits.ts';
import { authorize } from '../../core/policy.ts';
import { isFault, isUnreachable, problems } from '../../core/problem.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { type AgentCore, type Principal, SERVICE } from '../agents/core.ts';
import { ignoreNotRunning, type Lifecycle } from '../agents/lifecycle.ts';
import { type AgentRow, findAgent } from '../agents/queries/agents.ts';
import { agentsOfRun, expiredRunAgents } from '../agents/queries/run-agents.ts';
import { isLive } from '../agents/records.ts';
import type { Agents } from '../agents/service.ts';
import { worktreeOf } from '../agents/worktree-release.ts';
import { requireRun } from './access.ts';
import { limits } from './limits.ts';
import type { RunPublisher } from './publisher.ts';
import { deleteRun, type RunRow } from './queries/runs.ts';
import { isRunOver, type RunDeletion } from './rules/run.ts';

export interface RunDeleterOptions {
  core: AgentCore;
  agents: Agents;
  lifecycle: Lifecycle;
  publisher: RunPublisher;
}

export interface DeleteRunOptions {
  /** Removes worktrees even if they have unsaved work. */
  delete_worktrees: boolean;
  /** Only reports what would happen. */
  dry_run: boolean;
}

export class RunDeleter {
  readonly #options: RunDeleterOptions;

  constructor(options: RunDeleterOptions) {
    this.#options = options;
  }

  /** Throws `run has not ended`, and `node_unreachable` before anything changes if a node does not answer. */
  async delete(
    caller: Caller,
    { team_id, run_id }: { team_id: string; run_id: string },
    options: DeleteRunOptions,
  ): Promise<RunDeletion> {
    const { core, agents, publisher } = this.#options;
    const find = (reader: Reader) => findDeletable(reader, caller, team_id, run_id);
    const rows = await core.store.read(async (reader) => {
      const { num } = await find(reader);
      const agents: AgentRow[] = [];
      for (const { id } of await agentsOfRun(reader, num)) agents.push((await findAgent(reader, id))!);
      return agents;
    });
    for (const node_id of new Set(rows.map((row) => row.node_id))) await core.nodes.get(node_id).reach();
    const deletion: RunDeletion = { id: run_id, agents: [], worktrees_kept: [], branches_kept: [] };
    if (options.dry_run) return this.#describe(deletion, rows, options);
    const principal: Principal = { user_id: caller.user_id, ip: caller.ip };
    for (const row of rows) {
      await this.#stop(row, principal);
      const { worktree_kept, branch_kept, of_others } = await agents.deleteEnded(row.id, principal, {
        delete_worktree: options.delete_worktrees,
      });
      const place = { agent_id: row.id, node_id: row.node_id };
      deletion.agents.push(row.id);
      if (worktree_kept && !of_others) deletion.worktrees_kept.push({ ...place, ...worktree_kept });
      if (branch_kept) deletion.branches_kept.push({ ...place, ...branch_kept });
    }
    await core.store.write(async (tx) => {
      const run = await find(tx);
      await deleteRun(tx, run);
      await publisher.publishDeletion(tx, run);
      const details = { run_id, team_id, number: run.number, agents: deletion.agents };
      await core.audit.record(tx, { event: 'run_deleted', ...principal, details });
      await core.extensions.publishTask(tx, run.task_num);
    });
    return deletion;
  }

  /**
   * Deletes agents whose run ended, or whose run was deleted, at least `days` ago. Skips nodes that do not answer. Resolves to
   * the number of deleted agents, at most `limits.expired_agents_per_sweep` per node.
   */
  async sweep(days: number): Promise<number> {
    const { core, agents } = this.#options;
    const before = core.clock.now() - days * 86_400_000;
    const found = await core.store.read((reader) =>
      expiredRunAgents(reader, before, limits.expired_agents_per_sweep),
    );
    let deleted = 0;
    const away = new Set<string>();
    for (const { id, node_id } of found) {
      if (away.has(node_id)) continue;
      try {
        await core.nodes.get(node_id).reach();
        await agents.deleteEnded(id, SERVICE, { delete_worktree: false });
        deleted++;
      } catch (error) {
        // It was started or deleted in the meantime, or its node is gone.
        if (isFault(error)) throw error;
        if (isUnreachable(error)) away.add(node_id);
      }
    }
    return deleted;
  }

  async #describe(
    deletion: RunDeletion,
    rows: readonly AgentRow[],
    { delete_worktrees }: DeleteRunOptions,
  ): Promise<RunDeletion> {
    const worktrees = new Map(rows.map((row) => [`${row.node_id} ${row.workdir}`, row]));
    for (const row of worktrees.values()) {
      if (row.worktree_mode !== 'create_worktree' || delete_worktrees) continue;
      const { folders } = this.#options.core.nodes.get(row.node_id);
      const reason = await folders.whyKept(worktreeOf(row), { owner: row.owner_id });
      const { id: agent_id, node_id, workdir } = row;
      if (reason !== null) deletion.worktrees_kept.push({ agent_id, node_id, workdir, reason });
    }
    deletion.agents.push(...rows.map(({ id }) => id));
    return deletion;
  }

  async #stop(row: AgentRow, principal: Principal): Promise<void> {
    if (!isLive(row)) return;
    const { core, lifecycle } = this.#options;
    const find = (reader: Reader) => core.records.mustFind(reader, row.id);
    await lifecycle.stopAndWait(find, principal, sharedLimits.stop_grace_ms).catch(ignoreNotRunning);
  }
}

/** The run, if the caller may delete it. People who only see it get a 403. */
async function findDeletable(
  reader: Reader,
  caller: Caller,
  team_id: string,
  run_id: string,
): Promise<RunRow> {
  const { team, run } = await requireRun(reader, caller, 'team.change', run_id, team_id);
  const resource = { ...(await teamResource(reader, team)), owner_id: run.created_by };
  authorize(caller, 'run.delete', resource, problems.notAllowed);
  if (!isRunOver(run)) throw problems.runNotEnded();
  return run;
}
