/** Leaves the page of a deleted agent, unless the user has left it already. */
import { useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { keys } from '../../api/keys.ts';
import type { AgentRecord } from '../../api/queries.ts';

export function useLeave(agent: AgentRecord): () => void {
  const queries = useQueryClient();
  const router = useRouter();
  return () => {
    queries.setQueryData<AgentRecord[]>(keys.agents, (rows) => rows?.filter((row) => row.id !== agent.id));
    if (router.latestLocation.pathname.startsWith(`/agents/${agent.id}`))
      void router.navigate({ to: '/agents', search: {} });
  };
}
