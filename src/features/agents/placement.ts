/** Decides where a new agent may work, and whether an existing agent may still work in its folder. */
import { basename } from 'node:path';
import { failpoint } from '../../base/failpoint.ts';
import { idFrom } from '../../base/ids.ts';
import type { Worktree } from '../../core/node.ts';
import { isUnreachable, Problem, problems } from '../../core/problem.ts';
import { ownerHasAccess } from '../../store/resources.ts';
import type { Reader } from '../../store/store.ts';
import { areRoot } from '../../store/users.ts';
import type { AgentBase } from './core.ts';
import type { CreateAgent } from './creation.ts';
import { type AgentRow, agentsInFolder, agentsOfWorktree, findAgent } from './queries/agents.ts';
import { isLive } from './records.ts';
import { keepWorktree, recordWorktree } from './unused-worktrees.ts';

/** Determines which worktrees of other agents a new agent may use. */
export interface WorktreeRights {
  /** Whether the creator of the new agent may operate this agent. */
  mayOperate(reader: Reader, row: AgentRow): Promise<boolean>;
  /** Whether the new agent shares the worktree of this agent. */
  shares(row: AgentRow): boolean;
  /** Finds an agent whose worktree the new agent shares. Omitted if there cannot be one. */
  findSharing?(reader: Reader): Promise<SharedWorktree | undefined>;
  /** True if the creator is root, who may use all worktrees. */
  may_use_all: boolean;
  /** Id of the new agent's owner. The node uses it to queue requests fairly. */
  owner: string;
}

type SharedWorktree = Pick<AgentRow, 'workdir' | 'worktree_branch' | 'worktree_base'>;

type PlacementRequest = Pick<
  CreateAgent,
  'name' | 'node_id' | 'workdir' | 'worktree_mode' | 'worktree_repo' | 'worktree_ref'
>;

export interface PlacementIds {
  /** The new agent's. */
  agent_id: string;
  /** The id for which the node makes the worktree: the new agent's, or the one that the agents of a run's member share. */
  worktree_id: string;
}

/**
 * Checks or creates the workdir, and then calls `insert` to insert the agent's row. Until then, no other agent gets a
 * worktree at the same path. A worktree for which `insert` inserts no agent is removed. Throws `workdir path must be
 * within allowed safe paths`, `no_local_node` and the node's errors.
 */
export async function prepareWorkdir<T>(
  core: AgentBase,
  ids: PlacementIds,
  request: PlacementRequest,
  rights: WorktreeRights,
  insert: (worktree: Worktree) => Promise<T>,
): Promise<T> {
  const { workdir } = request;
  const node_id = core.nodes.choose(request.node_id);
  const { folders } = core.nodes.get(node_id);
  if (request.worktree_mode !== 'create_worktree') {
    if (workdir === null || workdir === '') throw problems.workdirRequired();
    const { path, below_worktree_root } = await folders.resolve(workdir);
    if (below_worktree_root && !rights.may_use_all) {
      await core.store.read((reader) => assertWorktreeAccess(reader, node_id, path, rights.mayOperate));
    }
    return insert({ workdir, repo: null, branch: null, base: null });
  }
  return core.worktrees.run(ids.worktree_id, () => prepareWorktree(core, ids, request, rights, insert));
}

async function prepareWorktree<T>(
  core: AgentBase,
  { agent_id, worktree_id }: PlacementIds,
  request: PlacementRequest,
  rights: WorktreeRights,
  insert: (worktree: Worktree) => Promise<T>,
): Promise<T> {
  const { store } = core;
  const { workdir, worktree_repo: repo, worktree_ref: ref } = request;
  const node_id = core.nodes.choose(request.node_id);
  const { folders } = core.nodes.get(node_id);
  const sharing = await store.read(async (reader) => rights.findSharing?.(reader));
  const name = (sharing && worktreeName(sharing, worktree_id)) ?? request.name;
  const make = async (at: string | null, recorded = false) => {
    const { owner } = rights;
    const wanted = { agent_id: worktree_id, name, workdir: at, repo, ref, owner, recorded };
    await recordWorktree(core, node_id, agent_id, wanted);
    const worktree = await folders.createWorktree(wanted).catch(async (error: unknown) => {
      // The node has undone it, unless its answer is unknown.
      if (error instanceof Problem && !isUnreachable(error))
        await store.write((tx) => keepWorktree(core, tx, agent_id));
      throw error;
    });
    failpoint('worktree_made');
    // Nodes of earlier releases answer with the current commit of the branch.
    const is_shared = sharing?.workdir === worktree.workdir;
    return is_shared ? { ...worktree, base: sharing.worktree_base } : worktree;
  };
  // The node derives the name of the folder from the agent.
  if (workdir === null || workdir === '') return insert(await make(workdir));
  const { path } = await folders.resolve(workdir, { to_create: true });
  return core.worktrees.hold(node_id, path, worktree_id, async () => {
    const recorded = await store.read(async (reader) => {
      await assertPathFree(reader, node_id, path, rights.shares);
      // An agent that runs there would suddenly be in the new worktree.
      const others = (await agentsInFolder(reader, node_id, path)).filter(isLive);
      for (const row of others) if (!(await rights.mayOperate(reader, row))) throw problems.workdirNotSafe();
      // True if all remaining agents share the worktree.
      return (await agentsOfWorktree(reader, node_id, path)).length > 0;
    });
    return insert(await make(path, recorded));
  });
}

/**
 * The name from which the node derived the folder and the branch of a worktree, which may have changed since; null if neither
 * contains it.
 */
function worktreeName(
  { workdir, worktree_branch }: Pick<AgentRow, 'workdir' | 'worktree_branch'>,
  worktree_id: string,
): string | null {
  const end = `-${worktree_id}`;
  const derived = [worktree_branch ?? '', workdir].map((path) => basename(path));
  return derived.find((folder) => folder.endsWith(end))?.slice(0, -end.length) ?? null;
}

/** Whether two agents share a worktree. Agents of one member in one run do. */
export function sharesWorktree(
  row: AgentRow,
  { run_num, member_id }: Partial<Pick<AgentRow, 'run_num' | 'member_id'>>,
): boolean {
  return run_num != null && row.run_num === run_num && row.member_id === member_id;
}

/** Throws if another agent has a worktree at the path. `path`: a real path. */
export async function assertPathFree(
  reader: Reader,
  node_id: string,
  path: string,
  shares: (row: AgentRow) => boolean,
): Promise<void> {
  const taken = (await agentsOfWorktree(reader, node_id, path)).some((row) => !shares(row));
  if (taken) throw problems.workdirNotSafe();
}

/** Throws unless the folder is the worktree of an agent that the creator may operate. */
async function assertWorktreeAccess(
  reader: Reader,
  node_id: string,
  path: string,
  mayOperate: WorktreeRights['mayOperate'],
): Promise<void> {
  for (const row of await agentsOfWorktree(reader, node_id, path)) if (await mayOperate(reader, row)) return;
  throw problems.workdirNotSafe();
}

/** Throws unless the agent exists and may still work in its workdir. */
export async function assertWorkdirAccess(core: AgentBase, row: AgentRow): Promise<void> {
  await (await folderCheck(core, row))();
}

/** Calls `read`, which reads the agent's workdir. Checks the access before and after, because `read` may have had to wait. */
export async function readInWorkdir<T>(core: AgentBase, row: AgentRow, read: () => Promise<T>): Promise<T> {
  const check = await folderCheck(core, row);
  await check();
  const result = await read();
  await check();
  return result;
}

/**
 * Returns the check. Below the worktree root, another user's worktree may have been created at the agent's workdir since.
 */
async function folderCheck(core: AgentBase, row: AgentRow): Promise<() => Promise<void>> {
  const { path, claimed_by, is_foreign } = await resolveWorkdir(core, row);
  if (!isOwnClaim(row, claimed_by)) throw problems.workdirNotSafe();
  return () =>
    core.store.read(async (reader) => {
      // The worktree of a deleted agent may belong to another agent by now.
      if ((await findAgent(reader, row.id))?.num !== row.num) throw problems.agentNotFound();
      if (is_foreign) await assertAgentWorktreeAccess(core, reader, row, path);
    });
}

/**
 * Whether the worktree in a row still belongs to the agent. It does not if the database was restored from a backup that
 * still contains a deleted agent, and another agent has been given the worktree in the meantime.
 */
export async function ownsWorktree(core: AgentBase, row: WorktreeOwner): Promise<boolean> {
  const { folders } = core.nodes.get(row.node_id);
  const found = await folders.resolve(row.workdir).catch((error: unknown) => {
    // The removal itself handles a folder that is missing or was replaced.
    if (error instanceof Problem && error.kind === 'invalid') return null;
    throw error;
  });
  return found === null || isOwnClaim(row, found.claimed_by);
}

/** The columns that tell whether a worktree belongs to an agent. */
type WorktreeOwner = Pick<
  AgentRow,
  'id' | 'node_id' | 'workdir' | 'worktree_mode' | 'worktree_branch' | 'run_id' | 'member_id'
>;

function isOwnClaim(row: WorktreeOwner, claimed_by: string | null): boolean {
  if (row.worktree_mode !== 'create_worktree' || claimed_by === null || claimed_by === row.id) return true;
  const { run_id, member_id } = row;
  if (member_id === null) return false;
  // Agents of a run's member share one worktree. If the run was deleted, only the names that the node derived tell for whom
  // it was created.
  return run_id === null
    ? worktreeName(row, claimed_by) !== null
    : claimed_by === sharedWorktreeId(run_id, member_id);
}

/** The id for which the shared worktree of a run's member is created. */
export function sharedWorktreeId(run_id: string, member_id: string): string {
  return idFrom('agt', run_id, member_id);
}

/** `is_foreign`: the workdir is below the worktree root, but was not created for this agent. */
async function resolveWorkdir(core: AgentBase, row: AgentRow) {
  const found = await core.nodes.get(row.node_id).folders.resolve(row.workdir);
  // The node named the folder after this agent, whose record was lost and recovered.
  const is_named = basename(found.path).endsWith(`-${row.id}`);
  const is_own = row.worktree_mode === 'create_worktree' || is_named;
  return { ...found, is_foreign: found.below_worktree_root && !is_own };
}

/**
 * Root's own agents work anywhere, but not those of a run, which may follow another user's definition. `member_id` outlives the
 * team, so that deleting the team gives its agents no more rights.
 */
async function assertAgentWorktreeAccess(
  { extensions }: AgentBase,
  reader: Reader,
  row: AgentRow,
  path: string,
): Promise<void> {
  if (row.member_id === null && (await areRoot(reader, [row.owner_id]))) return;
  const mayUse = async (_: Reader, other: AgentRow) =>
    row.team_num === null
      ? other.owner_id === row.owner_id && ownerHasAccess(reader, other)
      : extensions.mayUseWorktree(reader, row, other);
  await assertWorktreeAccess(reader, row.node_id, path, mayUse);
}
