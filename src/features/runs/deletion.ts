/**
 * Deletes runs that have ended, with their agents and worktrees, and the agents of runs that ended long ago. Worktrees with
 * unsaved work are kept. A deletion that is interrupted can be repeated: the run's record is deleted last.
 */
import { limits as sharedLimits } from '../../base/limits.ts';
import { authorize } from '../../core/policy.ts';
import { isUnreachable, Problem, problems } from '../../core/problem.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import { type AgentCore, type Principal, SERVICE } from '../agents/core.ts';
import type { Lifecycle } from '../agents/lifecycle.ts';
import { type AgentRow, findAgent } from '../agents/queries/agents.ts';
import { agentsOfRun, expiredRunAgents } from '../agents/queries/run-agents.ts';
import { isLive } from '../agents/records.ts';
import type { Agents } from '../agents/service.ts';
import { ignoreNotRunning } from '../agents/session-errors.ts';
import { type ReleaseOptions, whyOfOthers, worktreeOf } from '../agents/worktree-release.ts';
import { requireRun } from './access.ts';
import { limits } from './limits.ts';
import type { RunPublisher } from './publisher.ts';
import { deleteRun, ownerOf, type RunRow, updateRun } from './queries/runs.ts';
import { isRunOver, type RunDeletion } from './rules/run.ts';

export interface RunDeleterOptions {
  core: AgentCore;
  agents: Agents;
  lifecycle: Lifecycle;
  publisher: RunPublisher;
  /** The ids of runs that are being deleted. */
  deleting: Set<string>;
}

export interface DeleteRunOptions {
  /** Removes worktrees even if they have unsaved work. */
  delete_worktrees: boolean;
  /** Only reports what would happen. */
  dry_run: boolean;
}

export class RunDeleter {
  readonly #options: RunDeleterOptions;
  /** By node, the number of the agent after which the next sweep begins. For other nodes, it begins with the oldest. */
  #swept = new Map<string, number>();

  constructor(options: RunDeleterOptions) {
    this.#options = options;
  }

  /**
   * Until it is done, the run can be neither resumed nor restarted. Throws `run has not ended`, `run is being deleted`, and
   * `node_unreachable` before anything changes if a node does not answer.
   */
  async delete(
    caller: Caller,
    { team_id, run_id }: { team_id: string; run_id: string },
    options: DeleteRunOptions,
  ): Promise<RunDeletion> {
    const { core, publisher } = this.#options;
    const find = (reader: Reader) => findDeletable(reader, caller, team_id, run_id);
    if (options.dry_run) return this.#describe(await core.store.read(find), options);
    const principal: Principal = { user_id: caller.user_id, ip: caller.ip };
    return this.#whileEnded(find, async (ended) => {
      const deletion = await this.#deleteAgents(ended, principal, options);
      await core.store.write(async (tx) => {
        const run = await find(tx);
        await deleteRun(tx, run);
        await publisher.publishDeletion(tx, run);
        const details = { run_id, team_id, number: run.number, agents: deletion.agents };
        await core.audit.record(tx, { event: 'run_deleted', ...principal, details });
        await core.extensions.publishTask(tx, run.task_num);
      });
      return deletion;
    });
  }

  /**
   * Deletes agents whose run ended, or whose run was deleted, at least `days` ago. Skips nodes that do not answer, and logs which
   * agents cannot be deleted. Resolves to the number of deleted agents, at most `limits.expired_agents_per_sweep` per node.
   * The next sweep continues after these agents, so that those which cannot be deleted do not keep others from it.
   */
  async sweep(days: number): Promise<number> {
    const { core, agents } = this.#options;
    const before = core.clock.now() - days * 86_400_000;
    const found = await core.store.read((reader) =>
      expiredRunAgents(reader, before, limits.expired_agents_per_sweep, this.#swept),
    );
    const by_node = Map.groupBy(found, ({ node_id }) => node_id);
    const full = [...by_node].filter(([, agents]) => agents.length === limits.expired_agents_per_sweep);
    this.#swept = new Map(full.map(([node_id, agents]) => [node_id, agents.at(-1)!.num]));
    let deleted = 0;
    const away = new Set<string>();
    for (const { id, node_id } of found) {
      if (away.has(node_id)) continue;
      try {
        await core.nodes.get(node_id).reach();
        await agents.deleteUnchecked(id, SERVICE, { discard_unsaved: false });
        deleted++;
      } catch (error) {
        if (!(error instanceof Problem)) {
          core.log.error({ err: error, agent_id: id }, 'cannot delete an agent of an old run');
          continue;
        }
        if (error.is_of_store) throw error;
        // Otherwise, it was started or deleted in the meantime, or its node is gone.
        if (isUnreachable(error)) away.add(node_id);
      }
    }
    return deleted;
  }

  /** Calls `remove`. Until it is done, the run cannot continue. */
  async #whileEnded<T>(
    find: (reader: Reader) => Promise<RunRow>,
    remove: (run: RunRow) => Promise<T>,
  ): Promise<T> {
    const { core, deleting } = this.#options;
    const { id } = await core.store.read(find);
    if (deleting.has(id)) throw problems.runBeingDeleted();
    deleting.add(id);
    try {
      // A write to the same row as a resume: if both commit at the same time, one of them runs again and is refused.
      const run = await core.store.write(async (tx) => {
        const found = await find(tx);
        updateRun(tx, found.num, { version: found.version });
        return found;
      });
      return await remove(run);
    } finally {
      deleting.delete(id);
    }
  }

  /** The agents of a run. Throws `node_unreachable` if the node of one of them does not answer. */
  async #findAgents({ num }: RunRow): Promise<AgentRow[]> {
    const { core } = this.#options;
    const rows = await core.store.read(async (reader) => {
      const agents: AgentRow[] = [];
      for (const { id } of await agentsOfRun(reader, num)) agents.push((await findAgent(reader, id))!);
      return agents;
    });
    for (const node_id of new Set(rows.map((row) => row.node_id))) await core.nodes.get(node_id).reach();
    return rows;
  }

  async #deleteAgents(
    run: RunRow,
    principal: Principal,
    { delete_worktrees }: DeleteRunOptions,
  ): Promise<RunDeletion> {
    const deletion = emptyDeletion(run);
    for (const row of await this.#findAgents(run)) {
      await this.#stop(row, principal);
      const { worktree_kept, branch_kept, was_last } = await this.#options.agents.deleteUnchecked(
        row.id,
        principal,
        { discard_unsaved: delete_worktrees },
      );
      const place = { agent_id: row.id, node_id: row.node_id };
      deletion.agents.push(row.id);
      if (worktree_kept && was_last) deletion.worktrees_kept.push({ ...place, ...worktree_kept });
      if (branch_kept) deletion.branches_kept.push({ ...place, ...branch_kept });
    }
    return deletion;
  }

  /** Reports what `#deleteAgents` would do. Of the agents that share a worktree, the last one decides about it. */
  async #describe(run: RunRow, { delete_worktrees }: DeleteRunOptions): Promise<RunDeletion> {
    const deletion = emptyDeletion(run);
    const rows = await this.#findAgents(run);
    const deleted = new Set(rows.map(({ num }) => num));
    const with_worktree = rows.filter(({ worktree_mode }) => worktree_mode === 'create_worktree');
    const last = new Map(with_worktree.map((row) => [`${row.node_id} ${row.workdir}`, row]));
    for (const row of last.values()) {
      const reason = await this.#whyKept(row, { discard_unsaved: delete_worktrees }, deleted);
      const { id: agent_id, node_id, workdir } = row;
      if (reason !== null) deletion.worktrees_kept.push({ agent_id, node_id, workdir, reason });
    }
    deletion.agents.push(...rows.map(({ id }) => id));
    return deletion;
  }

  /** Why a worktree would be kept; null if it would be removed, or if agents that are not in `deleted` share it. */
  async #whyKept(
    row: AgentRow,
    { discard_unsaved }: ReleaseOptions,
    deleted: ReadonlySet<number>,
  ): Promise<string | null> {
    const { core } = this.#options;
    const others = await whyOfOthers(core, row, deleted);
    if (others !== null) return others.is_shared ? null : others.reason;
    if (discard_unsaved) return null;
    return core.nodes.get(row.node_id).folders.whyKept(worktreeOf(row), { owner: row.owner_id });
  }

  async #stop(row: AgentRow, principal: Principal): Promise<void> {
    if (!isLive(row)) return;
    const { core, lifecycle } = this.#options;
    const find = (reader: Reader) => core.records.mustFind(reader, row.id);
    await lifecycle.stopAndWait(find, principal, sharedLimits.stop_grace_ms).catch(ignoreNotRunning);
  }
}

function emptyDeletion({ id }: RunRow): RunDeletion {
  return { id, agents: [], worktrees_kept: [], branches_kept: [] };
}

/** The run, if the caller may delete it. People who only see it get a 403. */
async function findDeletable(
  reader: Reader,
  caller: Caller,
  team_id: string,
  run_id: string,
): Promise<RunRow> {
  const { team, run } = await requireRun(reader, caller, 'team.change', run_id, team_id);
  const resource = { ...(await teamResource(reader, team)), owner_id: ownerOf(run) };
  authorize(caller, 'run.delete', resource, problems.notAllowed);
  if (!isRunOver(run)) throw problems.runNotEnded();
  return run;
}
