/** Leaves the page of a deleted agent. */
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { keys } from '../../api/keys.ts';
import type { AgentRecord } from '../../api/queries.ts';

export function useLeave(agent: AgentRecord): () => void {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return () => {
    queries.setQueryData<AgentRecord[]>(keys.agents, (rows) => rows?.filter((row) => row.id !== agent.id));
    void navigate({ to: '/agents', search: {} });
  };
}
