/** Leaves the page of an agent that is no more. */
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { AgentRecord } from '../../api/queries.ts';

export function useLeave(agent: AgentRecord): () => void {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return () => {
    queries.setQueryData<AgentRecord[]>(['agents'], (rows) => rows?.filter((row) => row.id !== agent.id));
    void navigate({ to: '/agents', search: {} });
  };
}
