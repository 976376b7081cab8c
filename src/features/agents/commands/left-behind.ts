/** Lists what forgotten agents leave on their node, so that people can clean it up. */
import type { LeftBehind } from '../rules.ts';

/** Returns lines of text. They contain unfiltered text of agents. */
export function leftBehindLines(all: readonly LeftBehind[]): string[] {
  return all.length === 0 ? ['nothing is left behind'] : all.flatMap(formatLines);
}

function formatLines(agent: LeftBehind): string[] {
  const { agent_id, name, node_id, workdir, worktree_mode, worktree_repo, worktree_branch } = agent;
  const branch = worktree_branch === null ? '' : `, branch ${worktree_branch} of ${worktree_repo}`;
  return [
    `left on node ${node_id} by ${name} (${agent_id}):`,
    `  ${worktree_mode === 'create_worktree' ? 'worktree' : 'workdir'} ${workdir}${branch}`,
    ...agent.sessions.map(({ id, pid }) => `  session ${id}${pid === null ? '' : ` (pid ${pid})`}`),
    ...agent.leftovers.map(({ pid, command }) => `  process ${pid}: ${command}`),
  ];
}
