/** This machine and the registered nodes: a table on wide screens, cards on phones. */
import { useQueries, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { agentsQuery, nodesQuery } from '../../api/queries.ts';
import { TableHead } from '../../ui/table-head.tsx';
import { Ago } from '../../ui/time.tsx';
import { healthQuery } from './data.ts';
import type { NodeRecord } from './health.ts';
import { NodeStatus } from './status.tsx';

interface Line {
  id: string;
  is_main: boolean;
  name: string;
  target: string;
  health: ReactNode;
  latency: string;
  agents: number;
  last_seen: ReactNode;
  version: string;
}

const columns = [
  { key: 'name', label: 'Name' },
  { key: 'target', label: 'Target' },
  { key: 'health', label: 'Health' },
  { key: 'latency', label: 'Latency' },
  { key: 'agents', label: 'Agents' },
  { key: 'last_seen', label: 'Last seen' },
  { key: 'version', label: 'Version' },
] as const;

export function NodeTable({ nodes }: { nodes: readonly NodeRecord[] }) {
  const lines = useLines(nodes);
  return (
    <>
      <table className="hidden w-full border-collapse md:table">
        <TableHead columns={[{ label: 'ID' }, ...columns]} />
        <tbody>
          {lines.map((line) => (
            <tr
              key={line.id}
              data-row
              className="border-line border-b hover:bg-surface [&>*]:px-2 [&>*]:py-1"
            >
              <th scope="row" className="pl-4! text-left font-normal">
                <NodeLink line={line} />
              </th>
              {columns.map(({ key }) => (
                <td key={key} className={key === 'target' || key === 'name' ? 'break-all' : undefined}>
                  {line[key]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <ul className="flex flex-col gap-2 p-3 md:hidden">
        {lines.map((line) => (
          <li key={line.id} data-row className="rounded-lg border border-line bg-raised p-3">
            <NodeLink line={line} />
            <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4">
              {columns
                .filter(({ key }) => line[key] !== '')
                .map(({ key, label }) => (
                  <div key={key} className="contents">
                    <dt className="text-muted">{label}</dt>
                    <dd className="break-words">{line[key]}</dd>
                  </div>
                ))}
            </dl>
          </li>
        ))}
      </ul>
    </>
  );
}

function NodeLink({ line: { id, is_main } }: { line: Line }) {
  if (is_main) return <span className="tap inline-flex items-center font-medium">{id}</span>;
  return (
    <Link
      to="/nodes"
      search={{ node: id }}
      className="tap inline-flex items-center break-all font-medium underline decoration-line-strong hover:decoration-current"
    >
      {id}
    </Link>
  );
}

/** This machine is first. It has no link, so it has no latency and no test. */
function useLines(nodes: readonly NodeRecord[]): Line[] {
  const { data: agents = [] } = useQuery(agentsQuery);
  const { data: all = [] } = useQuery(nodesQuery);
  const tests = useQueries({ queries: nodes.map(({ id }) => healthQuery(id)) });
  const main = all.find(({ id }) => id === 'main');
  const here: Line[] = main
    ? [
        {
          id: main.id,
          is_main: true,
          name: main.name,
          target: 'This machine',
          health: <NodeStatus status={main.status} />,
          latency: '',
          agents: agents.filter(({ node_id }) => node_id === main.id).length,
          last_seen: 'Now',
          version: '',
        },
      ]
    : [];
  const others = nodes.map((node, at): Line => {
    const latency_ms = tests[at]?.data?.latency_ms ?? null;
    return {
      id: node.id,
      is_main: false,
      name: node.name,
      target: node.grpc_target,
      health: <NodeStatus status={node.status} />,
      latency: latency_ms === null ? '' : `${Math.round(latency_ms)} ms`,
      agents: node.agents,
      last_seen: node.last_seen_at === null ? 'Never' : <Ago at={node.last_seen_at} />,
      version: node.version ?? '',
    };
  });
  return [...here, ...others];
}
