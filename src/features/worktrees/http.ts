/** HTTP handlers for worktrees: parse, call, shape the response. */
import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import type { Worktrees } from './service.ts';

export function worktreeHandlers(worktrees: Worktrees): Pick<Handlers, 'listWorktrees' | 'deleteWorktree'> {
  return {
    listWorktrees: async ({ caller, query }) => asList(query, await worktrees.list(caller, query, query)),
    deleteWorktree: ({ caller, params, query: { force = false, dry_run = false } }) =>
      worktrees.delete(caller, params.worktree_id, { force, dry_run }),
  };
}
