/** What agents that were forgotten leave on their node, for people who may have to clean up there. */
import type { LeftBehind } from '../domain/agent.ts';

/** Lines of text, with what agents chose in them as it is. */
export function leftBehindLines(all: readonly LeftBehind[]): string[] {
  return all.length === 0 ? ['no agent is left behind'] : all.flatMap(linesOf);
}

function linesOf(left: LeftBehind): string[] {
  const { agent_id, name, node_id, workdir, worktree_mode, worktree_repo, worktree_branch } = left;
  const branch = worktree_branch === null ? '' : `, branch ${worktree_branch} of ${worktree_repo}`;
  return [
    `left on node ${node_id} by ${name} (${agent_id}):`,
    `  ${worktree_mode === 'create_worktree' ? 'worktree' : 'workdir'} ${workdir}${branch}`,
    ...left.sessions.map(({ id, pid }) => `  session ${id}${pid === null ? '' : ` (pid ${pid})`}`),
    ...left.leftovers.map(({ pid, command }) => `  process ${pid}: ${command}`),
  ];
}
