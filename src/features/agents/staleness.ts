/**
 * Marks the agents of a silent node with the time of its last message. Their status remains what was last observed, and
 * nothing else happens to them.
 */

import type { AgentCore } from './core.ts';
import { limits } from './limits.ts';
import { agentsToMarkStale, findAgent, staleAgents, updateAgent } from './queries/agents.ts';

/** Marks every live agent of the node; with null, removes the marks. Writes them in batches. */
export async function markStale(core: AgentCore, node_id: string, since_ms: number | null): Promise<void> {
  const { store } = core;
  const ids = await store.read((reader) =>
    since_ms === null ? staleAgents(reader, node_id) : agentsToMarkStale(reader, node_id),
  );
  for (let from = 0; from < ids.length; from += limits.stale_agents_per_write) {
    await store.write(async (tx) => {
      for (const id of ids.slice(from, from + limits.stale_agents_per_write)) {
        const agent = await findAgent(tx, id);
        if (!agent) continue;
        updateAgent(tx, agent.num, { stale_since: since_ms, updated_at: core.clock.now() });
        if (since_ms !== null) {
          const error = 'the node of this agent does not answer; the agent continues there';
          await core.records.logError(tx, id, agent.session_id, 'node_unreachable', error, { node_id });
        }
        await core.records.publish(tx, id);
      }
    });
  }
}
