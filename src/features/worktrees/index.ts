/** Worktrees that svc created for agents, also after their agents were deleted. */
import type { AgentCore } from '../agents/core.ts';
import type { Feature } from '../feature.ts';
import { worktreeHandlers } from './http.ts';
import { Worktrees } from './service.ts';

export function openWorktrees(core: AgentCore): Feature {
  const worktrees = new Worktrees(core);
  return {
    name: 'worktrees',
    routes: worktreeHandlers(worktrees),
    extensions: { onWorktreeReleased: (...args) => worktrees.released(...args) },
  };
}
