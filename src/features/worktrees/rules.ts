/** Worktrees as clients see them. */
import type { AgentStatus, DiffSize } from '../agents/rules.ts';

/** `in_use`: it belongs to an agent. `kept`: its agent was deleted, and the worktree was kept. */
export const worktreeStates = ['in_use', 'kept'] as const;
export type WorktreeState = (typeof worktreeStates)[number];

export interface WorktreeRecord {
  /** The id of its agent, which stays the worktree's id when the agent is deleted. */
  id: string;
  state: WorktreeState;
  node_id: string;
  workdir: string;
  repo: string | null;
  branch: string | null;
  agent_name: string;
  /** Null if the agent was deleted. */
  agent_status: AgentStatus | null;
  owner_id: string;
  team_id: string | null;
  run_id: string | null;
  member_id: string | null;
  /** Why it was kept; null if it is in use. */
  reason: string | null;
  kept_at: string | null;
  /** The changes in it: those of its agent, or of a kept worktree when its agent was deleted. Null if they are not known. */
  diff: DiffSize | null;
}

/** `removable`: the answer of a dry run about a worktree that would be removed. */
export const worktreeOutcomes = ['removed', 'removable', 'kept'] as const;
export type WorktreeOutcome = (typeof worktreeOutcomes)[number];

export interface WorktreeDeletion {
  id: string;
  node_id: string;
  workdir: string;
  outcome: WorktreeOutcome;
  /** Why it, or with `record_only` its folder, was or would be kept; null otherwise. */
  reason: string | null;
  /** The folder belongs to another agent now. It stays, and only the record of the worktree can be removed, by force. */
  record_only: boolean;
  /** Set if only the branch was kept. */
  branch_kept: { branch: string; reason: string } | null;
}
