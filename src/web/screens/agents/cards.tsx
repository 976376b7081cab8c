import { Link } from '@tanstack/react-router';
import type { AgentRecord } from '../../api/queries.ts';
import { ObservedPermissionMode } from '../../ui/permission-mode.tsx';
import { AgentStatus } from '../../ui/status.tsx';
import { firstOf, type WaitingItem } from '../../waiting/queue.ts';
import { Branch, NextStep, Place, Since, StatusLine } from './facts.tsx';
import { getProgram } from './order.ts';

export function AgentCards({
  agents,
  waiting,
}: {
  agents: AgentRecord[];
  /** What waits for the user; the longest wait first. */
  waiting: readonly WaitingItem[];
}) {
  return (
    <ul className="grid gap-2 p-2 sm:grid-cols-2 md:p-3 lg:grid-cols-3">
      {agents.map((agent) => {
        const item = firstOf(waiting, agent.id);
        return (
          <li
            key={agent.id}
            data-row={agent.id}
            className="flex min-w-0 flex-col gap-1 rounded-lg border border-line bg-raised p-3"
          >
            <div className="flex items-center justify-between gap-2">
              <AgentStatus agent={agent} />
              <span className="text-muted text-sm">
                <Since agent={agent} />
              </span>
            </div>
            <Link
              to="/agents/$agent_id"
              params={{ agent_id: agent.id }}
              className="tap flex items-center font-medium hover:underline"
            >
              <span className="truncate">{agent.name}</span>
            </Link>
            <p className="line-clamp-2 break-words text-sm">
              <StatusLine agent={agent} item={item} />
            </p>
            <p className="flex min-w-0 flex-wrap items-center gap-x-2 text-muted text-sm">
              <span>{getProgram(agent)}</span>
              <Place agent={agent} />
              <ObservedPermissionMode agent={agent} />
              <Branch agent={agent} />
            </p>
            <div className="mt-1 flex justify-end gap-2">
              <NextStep agent={agent} item={item} />
            </div>
          </li>
        );
      })}
    </ul>
  );
}
