/** A new agent, made and started from anywhere in the page. */
import type { SentBody } from '../../api/route.ts';
import type { RouteOf } from '../../api/routes.ts';
import { call, newKey, wordsOf } from '../api/client.ts';
import { type AgentRecord, agentQuery, queries } from '../api/queries.ts';
import { tell } from '../ui/toast.tsx';

export type NewAgentBody = Omit<SentBody<RouteOf<'createAgent'>>, 'start'>;

/**
 * Answers the agent's id once it is made: its page opens while it starts. What then hinders the start is told, and the
 * page of the agent has the button to start it again. Throws what refuses it to be made.
 */
export async function startNew(body: NewAgentBody): Promise<string> {
  const { id, name, ...record } = await call('createAgent', { body, idempotency_key: newKey() });
  const { queryKey } = agentQuery(id);
  queries.setQueryData<AgentRecord>(queryKey, { id, name, ...record, activity: 'starting' });
  call('startAgent', { params: { agent_id: id }, idempotency_key: newKey() }).then(
    (started) => queries.setQueryData(queryKey, started),
    (error) => {
      tell(name, wordsOf(error));
      void queries.invalidateQueries({ queryKey });
    },
  );
  return id;
}

/** The agent that needs no key and no account, in a folder of its own. */
export function startDemo(): Promise<string> {
  return startNew({
    name: `demo-${new Date().toTimeString().slice(0, 5).replace(':', '')}`,
    preset: 'demo',
    worktree_mode: 'create_worktree',
    prompt: 'Show what an agent can do here.',
  });
}
