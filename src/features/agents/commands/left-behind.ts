/** Lists what forgotten agents leave on their node, so that people can clean it up. */
import type { LeftBehind } from '../rules.ts';

/** Returns lines of text. They contain unfiltered text of agents. */
export function leftBehindLines(all: readonly LeftBehind[]): string[] {
  return all.length === 0 ? ['nothing is left behind'] : all.flatMap(formatLines);
}

function formatLines(left: LeftBehind): string[] {
  const { agent_id, name, node_id, workdir, worktree_mode, worktree_repo, worktree_branch } = left;
  const branch = worktree_branch === null ? '' : `, branch ${worktree_branch} of ${worktree_repo}`;
  return [
    `left on node ${node_id} by ${name} (${agent_id}):`,
    `  ${worktree_mode === 'create_worktree' ? 'worktree' : 'workdir'} ${workdir}${branch}`,
    ...left.sessions.map(({ id, pid }) => `  session ${id}${pid === null ? '' : ` (pid ${pid})`}`),
    ...left.leftovers.map(({ pid, command }) => `  process ${pid}: ${command}`),
  ];
}
