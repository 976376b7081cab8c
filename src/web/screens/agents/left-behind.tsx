/** What agents leave on a machine, when their records are deleted without contacting it. */
import type { AgentRecord } from '../../api/queries.ts';

/** Lists what the records name. The audit log keeps the list when the agents are forgotten. */
export function LeftBehindList({ agents }: { agents: readonly AgentRecord[] }) {
  return (
    <ul aria-label="Left on the machine" className="flex max-h-60 flex-col gap-2 overflow-y-auto">
      {agents.map((agent) => (
        <li key={agent.id}>
          <p className="break-words font-medium">{agent.name}</p>
          <ul className="break-all font-mono text-sm">
            {formatLines(agent).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function formatLines(agent: AgentRecord): string[] {
  const { workdir, worktree_mode, worktree_branch, status, session_id, leftovers } = agent;
  return [
    `${worktree_mode === 'create_worktree' ? 'worktree' : 'folder'} ${workdir}`,
    ...(worktree_branch === null ? [] : [`branch ${worktree_branch}`]),
    ...(status === 'running' ? [`the processes of session ${session_id}`] : []),
    ...leftovers.map(({ pid, command }) => `process ${pid}: ${command}`),
  ];
}
