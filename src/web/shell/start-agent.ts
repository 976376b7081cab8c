/** Creates and starts an agent. */
import type { SentBody } from '../../api/route.ts';
import type { RouteOf } from '../../api/routes.ts';
import { call, errorMessage, newKey } from '../api/client.ts';
import { putResponse } from '../api/put-response.ts';
import { type AgentRecord, agentQuery, queries } from '../api/queries.ts';
import { showToast } from '../ui/toast.tsx';

export type NewAgentBody = Omit<SentBody<RouteOf<'createAgent'>>, 'start'>;

/**
 * Returns the agent's id once it is created, so that its page opens while it starts. If the start fails, shows a toast; the
 * agent's page has a button to start it again. Throws if the agent cannot be created; another attempt needs the same key.
 */
export async function startNew(body: NewAgentBody, idempotency_key: string): Promise<string> {
  const { id, name, ...record } = await call('createAgent', { body, idempotency_key });
  const { queryKey } = agentQuery(id);
  queries.setQueryData<AgentRecord>(queryKey, { id, name, ...record, activity: 'starting' });
  call('startAgent', { params: { agent_id: id }, idempotency_key: newKey() }).then(
    (started) => putResponse(queries, { one: queryKey }, started),
    (error) => {
      showToast(name, errorMessage(error));
      void queries.invalidateQueries({ queryKey });
    },
  );
  return id;
}

/** Starts the demo agent in a new folder. It needs no API key and no account. */
export function startDemo(keyOf: (body: NewAgentBody) => string = newKey): Promise<string> {
  const body: NewAgentBody = {
    name: `demo-${new Date().toTimeString().slice(0, 5).replace(':', '')}`,
    preset: 'demo',
    worktree_mode: 'create_worktree',
    prompt: 'Show what an agent can do here.',
  };
  return startNew(body, keyOf(body));
}
