/** What the members of a run changed in their worktrees, from the records of their agents (pure). */
import type { Agent, DiffSize } from '../../agents/rules.ts';

type AgentFields = Pick<
  Agent,
  'id' | 'run_id' | 'member_id' | 'worktree_mode' | 'summary' | 'last_event_at' | 'created_at'
>;

export interface MemberChanges extends DiffSize {
  member_id: string;
  /** The agent whose changes show them. */
  agent_id: string;
}

/**
 * The changes of each member with a worktree of its own, as measured after its last turn or session, in the order of the
 * members. Without members that changed nothing. `agents`: they may contain those of other runs.
 */
export function listMemberChanges(
  run: { id: string; spec: { members: readonly { member_id: string }[] } },
  agents: readonly AgentFields[],
): MemberChanges[] {
  const own = agents.filter(
    ({ run_id, worktree_mode }) => run_id === run.id && worktree_mode === 'create_worktree',
  );
  return run.spec.members.flatMap(({ member_id }) => {
    // All agents of a member share its worktree, and the one that worked last was measured last.
    const last = own
      .filter((agent) => agent.member_id === member_id && agent.summary.diff !== null)
      .reduce<AgentFields | null>((a, b) => (a !== null && lastAt(a) >= lastAt(b) ? a : b), null);
    if (last === null || last.summary.diff!.files === 0) return [];
    return [{ member_id, agent_id: last.id, ...last.summary.diff! }];
  });
}

function lastAt({ last_event_at, created_at }: AgentFields): number {
  return Date.parse(last_event_at ?? created_at);
}
