/**
 * Worktrees of agents, and those that outlive their agents. A worktree with unsaved work is kept when its agent is deleted,
 * and listed with the reason until somebody removes it.
 */
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Worktree } from '../../core/node.ts';
import { isPaged, type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import { problems } from '../../core/problem.ts';
import { agentResource } from '../../store/resources.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AgentCore } from '../agents/core.ts';
import { ownsWorktree } from '../agents/placement.ts';
import { agentsInFolder, agentsOfWorktree, findAgent } from '../agents/queries/agents.ts';
import type { WorktreeAgent } from '../feature.ts';
import {
  deleteKept,
  deleteKeptAt,
  findKept,
  insertKept,
  type KeptRow,
  listWorktrees,
  toWorktree,
  updateKeptReason,
  type WorktreeFilter,
} from './queries.ts';
import type { WorktreeDeletion, WorktreeRecord } from './rules.ts';

export interface RemoveOptions {
  /** Removes the worktree even if it has unsaved work, or only its record if the folder belongs to another agent now. */
  force: boolean;
  /** Only reports what would happen. */
  dry_run: boolean;
}

export class Worktrees {
  readonly #core: AgentCore;

  constructor(core: AgentCore) {
    this.#core = core;
  }

  /** Newest first. Without a page request: all of them. */
  list(
    caller: Caller,
    filter: Pick<WorktreeFilter, 'state' | 'node_id' | 'repo'>,
    request: PageRequest,
  ): Promise<Page<WorktreeRecord>> {
    authorize(caller, 'agents.list');
    const paged = isPaged(request);
    const limit = paged ? (request.limit ?? sharedLimits.page_items_default) : Number.MAX_SAFE_INTEGER - 1;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#core.store.read(async (reader) => {
      const rows = await listWorktrees(reader, {
        ...filter,
        view: viewOf(caller),
        before_num,
        limit: limit + 1,
      });
      return page(rows, limit, toWorktree, (row) => [row.num]);
    });
  }

  /** Records what became of the worktree of a deleted agent. `kept_because`: null if it was removed. */
  async released(tx: Tx, agent: WorktreeAgent, kept_because: string | null): Promise<void> {
    const { node_id, workdir } = agent;
    if (kept_because === null) {
      await deleteKeptAt(tx, node_id, workdir);
      return;
    }
    await insertKept(tx, {
      num: agent.num,
      agent_id: agent.id,
      agent_name: agent.name,
      owner_id: agent.owner_id,
      team_num: agent.team_num,
      run_id: agent.run_id,
      member_id: agent.member_id,
      ...{ node_id, workdir },
      repo: agent.worktree_repo,
      branch: agent.worktree_branch,
      base: agent.worktree_base,
      reason: kept_because,
      kept_at: this.#core.clock.now(),
      diff: agent.diff,
    });
  }

  /**
   * Removes a kept worktree, or returns why it is still kept. Throws `worktree not found`, `worktree is in use`, and
   * `node_unreachable` if the node does not answer.
   */
  async delete(caller: Caller, id: string, { force, dry_run }: RemoveOptions): Promise<WorktreeDeletion> {
    const { store, nodes, worktrees } = this.#core;
    const row = await store.read((reader) => this.#find(reader, caller, id));
    const { node_id, workdir } = row;
    await nodes.get(node_id).reach();
    return worktrees.hold(node_id, workdir, id, async () => {
      const taken_by = await store.read(async (reader) =>
        usersOf(reader, await this.#find(reader, caller, id)),
      );
      if (taken_by !== null) return this.#keep(caller, row, taken_by, dry_run);
      const owner = { ...row, id, worktree_mode: 'create_worktree', worktree_branch: row.branch } as const;
      if (!(await ownsWorktree(this.#core, owner))) return this.#disown(caller, row, { force, dry_run });
      const { folders } = nodes.get(node_id);
      const worktree: Worktree = { workdir, repo: row.repo, branch: row.branch, base: row.base };
      if (dry_run) {
        const reason = force ? null : await folders.whyKept(worktree, { owner: row.owner_id });
        return reason === null ? toDeletion(row, 'removable') : toDeletion(row, 'kept', reason);
      }
      const removal = await folders.removeWorktree(worktree, { force, owner: row.owner_id });
      if (!removal.removed) return this.#keep(caller, row, removal.kept_because!, dry_run);
      await store.write(async (tx) => {
        await deleteKeptAt(tx, node_id, workdir);
        await this.#audit(tx, caller, row, { force, branch_kept: removal.kept_because });
      });
      const { kept_because: reason } = removal;
      const branch_kept = reason === null || row.branch === null ? null : { branch: row.branch, reason };
      return { ...toDeletion(row, 'removed'), branch_kept };
    });
  }

  /** Throws `worktree is in use` if its agent exists, and `worktree not found` if the caller may not delete it. */
  async #find(reader: Reader, caller: Caller, id: string): Promise<KeptRow> {
    const row = await findKept(reader, id);
    if (row) {
      authorize(
        caller,
        'agent.delete',
        await agentResource(reader, { ...row, id }),
        problems.worktreeNotFound,
      );
      return row;
    }
    const agent = await findAgent(reader, id);
    if (agent === undefined || agent.worktree_mode !== 'create_worktree') throw problems.worktreeNotFound();
    authorize(caller, 'agent.delete', await agentResource(reader, agent), problems.worktreeNotFound);
    throw problems.worktreeInUse();
  }

  async #keep(caller: Caller, row: KeptRow, reason: string, dry_run: boolean): Promise<WorktreeDeletion> {
    if (!dry_run && reason !== row.reason) {
      await this.#core.store.write(async (tx) => {
        await this.#find(tx, caller, row.agent_id);
        await updateKeptReason(tx, row.agent_id, reason);
      });
    }
    return toDeletion(row, 'kept', reason);
  }

  /** Keeps a worktree whose folder belongs to another agent now, or removes its record by force. */
  async #disown(caller: Caller, row: KeptRow, { force, dry_run }: RemoveOptions): Promise<WorktreeDeletion> {
    const reason = 'the folder belongs to another agent now';
    if (!force) return { ...(await this.#keep(caller, row, reason, dry_run)), record_only: true };
    if (dry_run) return { ...toDeletion(row, 'removable', reason), record_only: true };
    await this.#core.store.write(async (tx) => {
      await deleteKept(tx, row.agent_id);
      await this.#audit(tx, caller, row, { force, record_only: true });
    });
    return { ...toDeletion(row, 'removed', reason), record_only: true };
  }

  async #audit(tx: Tx, { user_id, ip }: Caller, row: KeptRow, how: Record<string, unknown>): Promise<void> {
    const { agent_id, node_id, workdir, branch } = row;
    const details = { node_id, branch, ...how };
    await this.#core.audit.record(tx, { event: 'worktree_removed', agent_id, user_id, ip, workdir, details });
  }
}

/**
 * Counts the agents that work in the folder, as the reason to keep it; null if none do. Does not name them, because others who see
 * the worktree may not see the agents.
 */
async function usersOf(reader: Reader, { node_id, workdir }: KeptRow): Promise<string | null> {
  const agents = [
    ...(await agentsOfWorktree(reader, node_id, workdir)),
    ...(await agentsInFolder(reader, node_id, workdir)),
  ];
  const { size } = new Set(agents.map(({ id }) => id));
  if (size === 0) return null;
  return size === 1 ? 'an agent works in it' : `${size} agents work in it`;
}

function toDeletion(
  { agent_id: id, node_id, workdir }: KeptRow,
  outcome: WorktreeDeletion['outcome'],
  reason: string | null = null,
): WorktreeDeletion {
  return { id, node_id, workdir, outcome, reason, record_only: false, branch_kept: null };
}
