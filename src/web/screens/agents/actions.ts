/** What can be done to an agent from anywhere, with the list told at once. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from '../../../core/problem.ts';
import { call, newKey, wordsOf } from '../../api/client.ts';
import type { AgentRecord } from '../../api/queries.ts';
import { tell } from '../../ui/toast.tsx';

type Act = 'start' | 'stop' | 'restart';

const operations = { start: 'startAgent', stop: 'stopAgent', restart: 'restartAgent' } as const;

/** Its answer is the record as it is then; the fleet stream brings the same. A failure is told with the agent's name. */
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
      queries.setQueryData(['agent', record.id], record);
      queries.setQueryData<AgentRecord[]>(['agents'], (rows) =>
        rows?.map((row) => (row.id === record.id ? record : row)),
      );
    },
    onError: (error) => {
      const kept = error instanceof Problem && error.pending;
      tell(agent.name, kept ? `${wordsOf(error)}; the ${kept} waits for it` : wordsOf(error));
    },
  });
}
