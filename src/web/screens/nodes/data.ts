/** Queries and mutations of nodes, for root. The fleet feed invalidates them. */
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { all, call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { agentsQuery, presetsQuery } from '../../api/queries.ts';
import type { NodeRecord } from './health.ts';

export const agentNodesQuery = queryOptions({
  queryKey: keys.agent_nodes,
  queryFn: () => all('listAgentNodes'),
  // The number of agents and the last contact are not part of the stream.
  refetchInterval: 15_000,
});

/** Latencies and free disk space, measured by the service every few seconds. */
export const measurementsQuery = queryOptions({
  queryKey: keys.node_measurements,
  queryFn: () => call('measureNodes'),
  staleTime: 10_000,
  refetchInterval: 15_000,
});

/** Runs the connection test. */
export const healthQuery = (node_id: string) =>
  queryOptions({
    queryKey: keys.node_health(node_id),
    queryFn: () => call('getAgentNodeHealth', { params: { node_id } }),
    staleTime: 30_000,
    retry: false,
  });

/**
 * Which agents are installed on a node. The node starts each of them to read its version, so the answer is used for longer than
 * where somebody is about to start one.
 */
export const foundAgentsQuery = (node_id: string) =>
  queryOptions({ ...presetsQuery(node_id), staleTime: 10 * 60_000, retry: false });

/** The agents bound to a node, with any status. */
export function useBoundAgents(node_id: string) {
  const { data = [] } = useQuery(agentsQuery);
  return data.filter((agent) => agent.node_id === node_id);
}

export function useRefetchNodes(): () => void {
  const queries = useQueryClient();
  return () => {
    void queries.invalidateQueries({ queryKey: keys.agent_nodes });
    void queries.invalidateQueries({ queryKey: keys.nodes });
  };
}

export function useChangeNode(node: NodeRecord, onDone: () => void) {
  const refetch = useRefetchNodes();
  return useMutation({
    mutationFn: (body: Partial<Pick<NodeRecord, 'tls_server_name' | 'default_worktree_root'>>) =>
      call('updateAgentNode', { params: { node_id: node.id }, body }),
    onSuccess: () => {
      refetch();
      onDone();
    },
  });
}
