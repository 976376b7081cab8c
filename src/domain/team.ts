/**
 * A team: its members, and the steps that they take. The definition stands in `spec`; what a run does with it in `run.ts`.
 */
import type { PermissionMode, Protocol, WorktreeMode } from './agent.ts';
import type { ReviewRoute } from './review.ts';

export const stepConditions = ['on_success', 'always'] as const;
/** `always`: taken once everything it depends on is over, whatever came of it. */
export type StepCondition = (typeof stepConditions)[number];

/** How a member's agent is made. One of `command`, `argv` and `preset` says what it runs. */
export interface MemberAgent {
  command: string | null;
  argv: string[] | null;
  preset: string | null;
  permission_mode: PermissionMode;
  protocol: Protocol;
  node_id: string;
  workdir: string | null;
  worktree_mode: WorktreeMode;
  worktree_repo: string | null;
  env: Record<string, string>;
}

export interface Member {
  member_id: string;
  description: string;
  skills: string[];
  /** The role that an agent is given; empty: none beyond the description. */
  prompt: string;
  /** Null: driven from outside, by people and programs. */
  agent: MemberAgent | null;
}

export interface StepSpec {
  step_key: string;
  member_id: string;
  depends_on: string[];
  when: StepCondition;
  prompt: string;
  /** Any JSON; null: none. */
  input: unknown;
  /** Of one attempt; null: no end. */
  timeout_seconds: number | null;
  max_attempts: number;
}

/** With every default filled in. */
export interface TeamSpec {
  spec_version: 1;
  entrypoint: { type: 'task' };
  members: Member[];
  leader_member_id: string | null;
  steps: StepSpec[];
  review_route: ReviewRoute;
  max_rounds: number;
}

/** A definition as it is asked for: `env_keys` names variables that keep the values they have. */
export type AskedSpec = WithAgents<MemberAgent & { env_keys?: string[] | undefined }>;

/** A definition as it is shown: the values of variables are write-only, their names are `env_keys`. */
export type ShownSpec = WithAgents<Omit<MemberAgent, 'env'> & { env_keys: string[] }>;

type WithAgents<Agent> = Omit<TeamSpec, 'members'> & {
  members: (Omit<Member, 'agent'> & { agent: Agent | null })[];
};

export interface Team {
  id: string;
  name: string;
  description: string;
  spec: ShownSpec;
  version: number;
  /** Usernames, in order. */
  human_members: string[];
  /** A user's id. */
  created_by: string;
  created_at: string;
  updated_at: string;
}

/** How a member takes its steps: side by side, one turn after the other, or by somebody's word. */
export type MemberKind = 'plain' | 'acp' | 'outside';

export function memberKind({ agent }: { agent: Pick<MemberAgent, 'protocol'> | null }): MemberKind {
  if (agent === null) return 'outside';
  return agent.protocol === 'acp' ? 'acp' : 'plain';
}

/** Who takes steps that name nobody. */
export function defaultMember({
  leader_member_id,
  members,
}: Pick<TeamSpec, 'leader_member_id'> & { members: readonly Pick<Member, 'member_id'>[] }): string {
  return leader_member_id ?? members[0]!.member_id;
}
