import { Link } from '@tanstack/react-router';
import type { AgentRecord } from '../../api/queries.ts';
import { ObservedPermissionMode } from '../../ui/permission-mode.tsx';
import { AgentStatus } from '../../ui/status.tsx';
import { firstOf, type WaitingItem } from '../../waiting/queue.ts';
import { Branch, NextStep, Place, Since, StatusLine } from './facts.tsx';
import { getProgram } from './order.ts';

export function AgentRows({
  agents,
  waiting,
}: {
  agents: AgentRecord[];
  /** What waits for the user; the longest wait first. */
  waiting: readonly WaitingItem[];
}) {
  return (
    <table className="w-full table-fixed border-collapse">
      <colgroup>
        <col className="w-32" />
        <col />
        <col className="w-28" />
        <col className="w-1/4" />
        <col className="w-32" />
        <col className="w-40" />
      </colgroup>
      <thead className="sr-only">
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Name</th>
          <th scope="col">Program</th>
          <th scope="col">Where</th>
          <th scope="col">Time</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {agents.map((agent) => {
          const item = firstOf(waiting, agent.id);
          return (
            <tr
              key={agent.id}
              data-row={agent.id}
              className="group h-11 border-line border-b hover:bg-surface [&>td]:px-2 [&>td]:py-1"
            >
              <td className="pl-4!">
                <AgentStatus agent={agent} />
              </td>
              <th scope="row" className="text-left font-normal">
                <Link
                  to="/agents/$agent_id"
                  params={{ agent_id: agent.id }}
                  className="block truncate font-medium hover:underline"
                  title={agent.name}
                >
                  {agent.name}
                </Link>
                <span className="block truncate text-sm">
                  <StatusLine agent={agent} item={item} />
                </span>
              </th>
              <td className="text-muted">
                <span className="block truncate">{getProgram(agent)}</span>
                <span className="block truncate text-sm">
                  <ObservedPermissionMode agent={agent} />
                </span>
              </td>
              <td className="text-muted text-sm">
                <span className="block truncate">
                  <Place agent={agent} />
                </span>
                <Branch agent={agent} />
              </td>
              <td className="text-right text-muted">
                <Since agent={agent} />
              </td>
              <td className="pr-4!">
                <div className="flex justify-end gap-1">
                  <NextStep agent={agent} item={item} />
                </div>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
