/** Starting, stopping and restarting an agent from any screen. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from '../../../core/problem.ts';
import { call, errorMessage, newKey } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { showToast } from '../../ui/toast.tsx';

type Act = 'start' | 'stop' | 'restart';

const operations = { start: 'startAgent', stop: 'stopAgent', restart: 'restartAgent' } as const;

/** Updates the cached record with the response. Shows an error as a toast with the agent's name. */
export function useAgentAct(agent: Pick<AgentRecord, 'id' | 'name'>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (act: Act) => {
      const args = { params: { agent_id: agent.id } };
      return act === 'stop'
        ? call('stopAgent', args)
        : call(operations[act], { ...args, idempotency_key: newKey() });
    },
    onSuccess: (record) => {
      queries.setQueryData(keys.agent(record.id), record);
      queries.setQueryData<AgentRecord[]>(keys.agents, (rows) =>
        rows?.map((row) => (row.id === record.id ? record : row)),
      );
    },
    onError: (error) => {
      const pending = error instanceof Problem && error.pending;
      showToast(
        agent.name,
        pending
          ? `${errorMessage(error)}; svc will ${pending} the agent when the node is back`
          : errorMessage(error),
      );
    },
  });
}
