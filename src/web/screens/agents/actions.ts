/** Starting, stopping and restarting an agent from any screen. */
import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from '../../../core/problem.ts';
import { call, errorMessage, newKey } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { showToast } from '../../ui/toast.tsx';

type Act = 'start' | 'stop' | 'restart';

const operations = { start: 'startAgent', stop: 'stopAgent', restart: 'restartAgent' } as const;

export type Named = Pick<AgentRecord, 'id' | 'name'>;

/** Updates the cached record with the response. Shows an error as a toast with the agent's name. */
export function useAgentAct(agent: Named) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (act: Act) => send(agent, act),
    onSuccess: (record) => storeAgent(queries, record),
    onError: (error) => showProblem(agent, error),
  });
}

/** The same for any agent of a list. */
export function useAnyAgentAct() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ agent, act }: { agent: Named; act: Act }) => send(agent, act),
    onSuccess: (record) => storeAgent(queries, record),
    onError: (error, { agent }) => showProblem(agent, error),
  });
}

function send({ id }: Named, act: Act): Promise<AgentRecord> {
  const args = { params: { agent_id: id } };
  return act === 'stop'
    ? call('stopAgent', args)
    : call(operations[act], { ...args, idempotency_key: newKey() });
}

/** Updates the cached record. */
export function storeAgent(queries: QueryClient, record: AgentRecord): void {
  putResponse(queries, { one: keys.agent(record.id), list: keys.agents }, record);
}

export function showProblem({ name }: Pick<Named, 'name'>, error: Error): void {
  const pending = error instanceof Problem && error.pending;
  showToast(
    name,
    pending
      ? `${errorMessage(error)}; svc will ${pending} the agent when the node is back`
      : errorMessage(error),
  );
}
