/**
 * Worktrees that were made for an agent that was never inserted: the plane was killed in between, the insertion failed, or
 * the run ended during the checkout. An intent is recorded before the worktree is made, and withdrawn in the transaction
 * that inserts the agent. An intent that is still there afterwards removes the worktree.
 */
import type { WorktreeRequest } from '../../core/node.ts';
import { isTemporary } from '../../core/problem.ts';
import type { Tx } from '../../store/store.ts';
import type { Intent, IntentHandlers } from '../../work/outbox.ts';
import type { AgentBase } from './core.ts';
import { agentsInFolder, agentsOfWorktree } from './queries/agents.ts';

/**
 * Call it before the worktree is made, within `core.worktrees.run`. `agent_id`: of the new agent. An intent of a run that
 * makes the worktree is in the same lane, so it comes first, also when it is tried again.
 */
export async function recordWorktree(
  { store, outbox }: AgentBase,
  node_id: string,
  agent_id: string,
  request: WorktreeRequest,
): Promise<void> {
  await store.write(async (tx) => {
    if (await outbox.isPending(tx, agent_id, 'discard_worktree')) return;
    await outbox.enqueue(tx, node_id, agent_id, 'discard_worktree', request);
  });
}

/** Call it when the agent has the worktree, or if none was made. */
export function keepWorktree({ outbox }: AgentBase, tx: Tx, agent_id: string): Promise<void> {
  return outbox.withdraw(tx, agent_id, ['discard_worktree']);
}

export function worktreeIntents(core: AgentBase): Pick<IntentHandlers, 'discard_worktree'> {
  return {
    // In turn, so that it waits until this process has made the worktree and inserted the agent.
    discard_worktree: (intent) => core.worktrees.run(intent.payload.agent_id, () => discard(core, intent)),
  };
}

async function discard(core: AgentBase, intent: Intent<'discard_worktree'>): Promise<void> {
  if (intent.withdrawn) return;
  const { node_id, payload } = intent;
  try {
    await removeUnused(core, node_id, payload);
  } catch (error) {
    if (isTemporary(error)) throw error;
    core.log.warn({ err: error, node_id, ...payload }, 'cannot remove a worktree that no agent uses');
  }
  // In this turn: the next one must not take it for the record of another worktree.
  await core.store.write((tx) => core.outbox.complete(tx, intent));
}

/** Removes the worktree, unless an agent uses it or it has unsaved work. */
async function removeUnused({ nodes, store, log }: AgentBase, node_id: string, request: WorktreeRequest) {
  const { folders } = nodes.get(node_id);
  // Finds it again, because only the node knows the path. If the node never made it, this creates it only to remove it.
  const worktree = await folders.createWorktree(request);
  const { workdir } = worktree;
  // The node knows from which commit it started. One of an earlier release answers with the last commit of its agents.
  const unused = { ...worktree, base: null };
  const users = await store.read(async (reader) => [
    ...(await agentsOfWorktree(reader, node_id, workdir)),
    ...(await agentsInFolder(reader, node_id, workdir)),
  ]);
  if (users.length > 0) return;
  const { owner } = request;
  const { removed, kept_because } = await folders.removeWorktree(unused, { force: false, owner });
  const fields = { node_id, ...worktree, kept_because };
  if (removed) log.info(fields, 'removed a worktree that no agent uses');
  else log.warn(fields, 'kept a worktree that no agent uses');
}
