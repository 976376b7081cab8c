/** Nodes as root reads and changes them. The stream of all changes says when they are to be read again. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { all, call } from '../../api/client.ts';
import { agentsQuery } from '../../api/queries.ts';
import type { NodeRecord } from './health.ts';

export const agentNodesQuery = queryOptions({
  queryKey: ['agent-nodes'],
  queryFn: () => all('listAgentNodes'),
  // How many agents are bound, and when a node was last seen, is no change that the stream tells.
  refetchInterval: 15_000,
});

/** A new test each time that somebody looks; the table shows the latency of the last. */
export const healthQuery = (node_id: string) =>
  queryOptions({
    queryKey: ['node-health', node_id],
    queryFn: () => call('getAgentNodeHealth', { params: { node_id } }),
    staleTime: 30_000,
    retry: false,
  });

/** The agents that are bound to a node, whatever their status. */
export function useBoundAgents(node_id: string) {
  const { data = [] } = useQuery(agentsQuery);
  return data.filter((agent) => agent.node_id === node_id);
}

export function useNodesAgain(): () => void {
  const queries = useQueryClient();
  return () => {
    for (const key of ['agent-nodes', 'nodes']) void queries.invalidateQueries({ queryKey: [key] });
  };
}

export function useChangeNode(node: NodeRecord, onDone: () => void) {
  const again = useNodesAgain();
  return useMutation({
    mutationFn: (body: Partial<Pick<NodeRecord, 'tls_server_name' | 'default_worktree_root'>>) =>
      call('updateAgentNode', { params: { node_id: node.id }, body }),
    onSuccess: () => {
      again();
      onDone();
    },
  });
}
