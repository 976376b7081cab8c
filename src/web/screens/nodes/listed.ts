/** The nodes as the list shows them: this machine and the registered nodes, with what is measured on them. */
import { useQuery } from '@tanstack/react-query';
import type { Answered, ItemOf } from '../../api/client.ts';
import { agentsQuery, nodesQuery } from '../../api/queries.ts';
import { measurementsQuery } from './data.ts';
import type { NodeRecord } from './health.ts';

type Measurement = Answered<'measureNodes'>[number];
type Summary = ItemOf<'listNodes'>;

export interface ListedNode {
  id: string;
  name: string;
  status: Summary['status'];
  /** Null for this machine, which is not registered. */
  record: NodeRecord | null;
  /** Null if only the node knows it. */
  worktree_root: string | null;
  agents: { running: number; total: number };
  latencies_ms: readonly number[];
  disk: Measurement['disk'];
}

/** Shown for a node whose own configuration has the worktree root. */
export const ROOT_ON_NODE = 'Configured on the node';

/** This machine first, then the records in their order. */
export function useListedNodes(records: readonly NodeRecord[]): ListedNode[] {
  const { data: agents = [] } = useQuery(agentsQuery);
  const { data: summaries = [] } = useQuery(nodesQuery);
  const { data: measurements = [] } = useQuery(measurementsQuery);
  const main = summaries.find(({ id }) => id === 'main');
  const measured = (node_id: string) => {
    const { latencies_ms = [], disk = null } = measurements.find((one) => one.node_id === node_id) ?? {};
    const bound = agents.filter((agent) => agent.node_id === node_id);
    const running = bound.filter(({ status }) => status === 'running').length;
    return { latencies_ms, disk, agents: { running, total: bound.length } };
  };
  const here: ListedNode[] = main
    ? [
        {
          id: main.id,
          name: main.name,
          status: main.status,
          record: null,
          worktree_root: main.folders?.worktree_root ?? null,
          ...measured(main.id),
        },
      ]
    : [];
  const others = records.map((record): ListedNode => {
    const { agents, ...rest } = measured(record.id);
    const { id, name, status, default_worktree_root: worktree_root } = record;
    // The record also counts agents that were created since the list of agents was read.
    const total = Math.max(agents.total, record.agents);
    return { id, name, status, record, worktree_root, agents: { ...agents, total }, ...rest };
  });
  return [...here, ...others];
}
