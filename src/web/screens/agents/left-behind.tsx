/** What forgotten agents leave on a machine that is gone: for whoever may have to clean up there. */
import type { LeftBehind } from '../../../domain/agent.ts';

export function LeftBehindList({ agents }: { agents: readonly LeftBehind[] }) {
  if (agents.length === 0) return <p>No agent is left behind there.</p>;
  return (
    <ul aria-label="Left behind" className="flex flex-col gap-2">
      {agents.map((left) => (
        <li key={left.agent_id}>
          <p className="break-words font-medium">{left.name}</p>
          <ul className="break-all font-mono text-sm">
            {linesOf(left).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function linesOf(left: LeftBehind): string[] {
  const { workdir, worktree_mode, worktree_branch, sessions, leftovers } = left;
  return [
    `${worktree_mode === 'create_worktree' ? 'worktree' : 'folder'} ${workdir}`,
    ...(worktree_branch === null ? [] : [`branch ${worktree_branch}`]),
    ...sessions.map(({ id, pid }) => (pid === null ? `session ${id}` : `session ${id}, pid ${pid}`)),
    ...leftovers.map(({ pid, command }) => `process ${pid}: ${command}`),
  ];
}
