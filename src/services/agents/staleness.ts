/**
 * What the records of agents say while their node is silent: since when. Their status stays what was last observed, and
 * nothing is done about them.
 */
import { limits } from '../../base/limits.ts';
import { findAgent, updateAgent } from '../../store/agents.ts';
import type { AgentsContext } from './context.ts';

/** Marks every live agent of the node, or, with null, takes all such marks away. Some at a time. */
export async function markStale(
  context: AgentsContext,
  node_id: string,
  since_ms: number | null,
): Promise<void> {
  const { store } = context.options;
  const ids = await store.read((reader) => {
    const query = reader.sql.selectFrom('agents').select('id').where('node_id', '=', node_id);
    const unmarked = query
      .where('stale_since', 'is', null)
      .where(
        'session_id',
        'in',
        reader.sql.selectFrom('sessions').select('id').where('state', '<>', 'ended'),
      );
    return reader.all(since_ms === null ? query.where('stale_since', 'is not', null) : unmarked);
  });
  for (let from = 0; from < ids.length; from += limits.stale_agents_per_write) {
    await store.write((tx) => {
      for (const { id } of ids.slice(from, from + limits.stale_agents_per_write)) {
        const agent = findAgent(tx, id);
        if (!agent) continue;
        updateAgent(tx, agent.num, { stale_since: since_ms, updated_at: context.now() });
        if (since_ms !== null) {
          const error = 'the node of this agent does not answer; the agent goes on there';
          context.error(tx, id, agent.session_id, 'node_unreachable', error, { node_id });
        }
        context.publish(tx, id);
      }
    });
  }
}
