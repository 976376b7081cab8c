/** What happens to an agent's worktree when the agent is deleted. */
import type { Worktree } from '../../core/node.ts';
import type { Leftover } from '../../core/session.ts';
import type { AgentCore } from './core.ts';
import { ownsWorktree } from './placement.ts';
import { type AgentRow, agentsOfWorktree } from './queries/agents.ts';

export interface Deleted {
  /** Null when no worktree was left behind. */
  worktree_kept: { workdir: string; reason: string } | null;
  /** Set if the worktree was removed, but not its branch. */
  branch_kept: { branch: string; reason: string } | null;
  /** Processes of the last session that still ran when it ended: kept, or not ended in time. They may have ended since. */
  leftovers: Leftover[];
}

/** What became of the worktree of a deleted agent. */
export interface Released extends Deleted {
  /** This was the last record of a worktree. False if other agents share it, or svc did not create the folder. */
  was_last: boolean;
}

export interface ReleaseOptions {
  /** Removes the worktree even if it has unsaved work. */
  discard_unsaved: boolean;
}

/** Removes the worktree of an agent that is being deleted, unless others use it. */
export async function releaseWorktree(
  core: AgentCore,
  row: AgentRow,
  { discard_unsaved }: ReleaseOptions,
): Promise<Released> {
  const { workdir, node_id, worktree_branch: branch } = row;
  const worktree = worktreeOf(row);
  const leftovers: Leftover[] = JSON.parse(row.leftovers);
  const nothing: Released = { worktree_kept: null, branch_kept: null, leftovers, was_last: true };
  if (row.worktree_mode !== 'create_worktree') return { ...nothing, was_last: false };
  const others = await whyOfOthers(core, row);
  if (others !== null) {
    const { reason, is_shared } = others;
    return { ...nothing, worktree_kept: { workdir, reason }, was_last: !is_shared };
  }
  const { folders } = core.nodes.get(node_id);
  const options = { force: discard_unsaved, owner: row.owner_id };
  const { removed, kept_because } = await folders.removeWorktree(worktree, options);
  if (!removed)
    return { ...nothing, worktree_kept: { workdir, reason: kept_because ?? 'it could not be removed' } };
  if (kept_because === null || branch === null) return nothing;
  return { ...nothing, branch_kept: { branch, reason: kept_because } };
}

/**
 * Why the folder is not this agent's to release, and whether other agents share it; null if it is. `deleted`: the nums of the
 * agents that do not count, because they are deleted together.
 */
export async function whyOfOthers(
  core: AgentCore,
  row: AgentRow,
  deleted: ReadonlySet<number> = new Set([row.num]),
): Promise<{ reason: string; is_shared: boolean } | null> {
  const sharing = await core.store.read(async (reader) =>
    (await agentsOfWorktree(reader, row.node_id, row.workdir)).filter(({ num }) => !deleted.has(num)),
  );
  if (sharing.length > 0) {
    return { reason: `other agents use it: ${sharing.map(({ id }) => id).join(', ')}`, is_shared: true };
  }
  return (await ownsWorktree(core, row)) ? null : { reason: 'it is another agent’s', is_shared: false };
}

export function worktreeOf(row: AgentRow): Worktree {
  const { workdir, worktree_repo: repo, worktree_branch: branch, worktree_base: base } = row;
  return { workdir, repo, branch, base };
}
