/** What a plane checks before it starts with `server.local_node = false`. */
import { MAIN_NODE, type SessionView } from '../core/node.ts';
import { invalid } from '../core/problem.ts';
import { findAgent, liveSessions } from '../features/agents/queries/agents.ts';
import type { Store } from '../store/store.ts';
import { limits } from './limits.ts';

/**
 * Throws `invalid_config`, and names the agents, if sessions of the main node may still run: the disk has them, or the
 * database does and the disk does not show their end. The plane would not supervise them.
 */
export async function refuseLiveSessions(
  store: Store,
  node: { sessions(): Promise<SessionView[]> },
): Promise<void> {
  const views = await node.sessions();
  const ended = new Set(views.filter(({ phase }) => phase === 'ended').map((view) => view.session_id));
  const names = new Map<string, string>();
  for (const { session_id, launch } of views)
    if (!ended.has(session_id)) names.set(session_id, launch.agent_name);
  await store.read(async (reader) => {
    for (const { id, agent_id } of await liveSessions(reader, MAIN_NODE)) {
      if (!ended.has(id)) names.set(id, (await findAgent(reader, agent_id))?.name ?? agent_id);
    }
  });
  if (names.size === 0) return;
  const shown = [...names.values()].slice(0, limits.live_agents_named);
  const more = names.size - shown.length;
  throw invalid(
    `server.local_node is false, but agents still run on this machine: ${shown.join(', ')}` +
      `${more > 0 ? `, and ${more} more` : ''}; start with server.local_node = true and stop them first`,
    'invalid_config',
  );
}
