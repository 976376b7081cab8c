/** What the deletion of an agent would do with its worktree, and what would be lost. Changes nothing. */
import type { ChangedFile } from '../../core/node.ts';
import { isUnreachable, Problem, problems } from '../../core/problem.ts';
import type { Leftover } from '../../core/session.ts';
import type { Reader } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AgentCore } from './core.ts';
import { limits } from './limits.ts';
import type { AgentRow } from './queries/agents.ts';
import { isLive } from './records.ts';
import { type ReleaseOptions, whyOfOthers, worktreeOf } from './worktree-release.ts';

export interface DeleteOptions {
  /** Stops a running agent first. */
  force: boolean;
  /** Removes the worktree even if it has unsaved work. */
  delete_worktree: boolean;
}

/** What a deletion would do with the worktree of an agent, and what it leaves. No worktree if svc did not create the folder. */
export interface DeletionPreview {
  /** See `Deleted.leftovers`; only if there are any. */
  leftovers?: Leftover[];
  worktree_kept?: { workdir: string; reason: string };
  worktree_removed?: {
    workdir: string;
    /** The work that exists nowhere else, as the node reports it; null: none. */
    lost: string | null;
    /** The files with uncommitted changes, at most `limits.uncommitted_files_max`; null if they are not known. */
    uncommitted: ChangedFile[] | null;
    /** Whether there are more of them. */
    truncated: boolean;
  };
}

/** Reports what `Agents.delete` would do. Keeps nothing for later, and throws like it. */
export async function previewDeletion(
  core: AgentCore,
  caller: Caller,
  agent_id: string,
  { force, delete_worktree }: DeleteOptions,
): Promise<DeletionPreview> {
  const find = (reader: Reader) => core.records.find(reader, caller, 'agent.delete', agent_id);
  const { node_id } = await core.store.read(find);
  await core.nodes.get(node_id).reach();
  const row = await core.store.read(find);
  if (isLive(row) && !force) throw problems.agentRunning();
  const leftovers: Leftover[] = JSON.parse(row.leftovers);
  const preview = await previewRelease(core, row, { discard_unsaved: delete_worktree });
  return leftovers.length > 0 ? { leftovers, ...preview } : preview;
}

/** Reports what `releaseWorktree` would do. */
async function previewRelease(
  core: AgentCore,
  row: AgentRow,
  { discard_unsaved }: ReleaseOptions,
): Promise<DeletionPreview> {
  if (row.worktree_mode !== 'create_worktree') return {};
  const { workdir, node_id, owner_id: owner } = row;
  const others = await whyOfOthers(core, row);
  if (others !== null) return { worktree_kept: { workdir, reason: others.reason } };
  const lost = await core.nodes.get(node_id).folders.whyKept(worktreeOf(row), { owner });
  if (lost !== null && !discard_unsaved) return { worktree_kept: { workdir, reason: lost } };
  const files = lost === null ? { uncommitted: [], truncated: false } : await readUncommitted(core, row);
  return { worktree_removed: { workdir, lost, ...files } };
}

async function readUncommitted(
  core: AgentCore,
  { node_id, workdir, worktree_repo, owner_id: owner }: AgentRow,
): Promise<{ uncommitted: ChangedFile[] | null; truncated: boolean }> {
  const unknown = { uncommitted: null, truncated: false };
  if (worktree_repo === null) return unknown;
  try {
    // Compared with HEAD, because what is committed stays on the branch.
    const { files, truncated } = await core.nodes
      .get(node_id)
      .folders.changes({ workdir, base: null, owner });
    const uncommitted = files.slice(0, limits.uncommitted_files_max);
    return { uncommitted, truncated: truncated || uncommitted.length < files.length };
  } catch (error) {
    // The worktree can be removed even if git cannot read it.
    if (error instanceof Problem && !isUnreachable(error)) return unknown;
    throw error;
  }
}
