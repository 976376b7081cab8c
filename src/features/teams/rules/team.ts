/** A team: its members and steps. `spec` has the definition; `features/runs/rules.ts` executes it. */
import type { PermissionMode, Protocol, WorktreeMode } from '../../agents/rules.ts';
import type { ReviewRoute } from '../../reviews/rules.ts';

export const stepConditions = ['on_success', 'always'] as const;
/** `always`: starts when everything that it depends on has ended, whatever the outcome. */
export type StepCondition = (typeof stepConditions)[number];

/** How a member's agent is created. One of `command`, `argv` and `preset` says what it runs. */
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
  /** Role instructions for an agent; empty: only the description. */
  prompt: string;
  /** Null: people and programs act as this member. */
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
  /** Time limit of one attempt; null: no limit. */
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

type UnplacedAgent = Omit<MemberAgent, 'node_id'> & { node_id?: string | undefined };

/** A definition of which agents may lack a node. */
export type UnplacedSpec = WithAgents<UnplacedAgent>;

/** A definition from a request: `env_keys` names variables that keep their value. */
export type SpecInput = WithAgents<UnplacedAgent & { env_keys?: string[] | undefined }>;

/** A definition in a response: values of variables are write-only, and `env_keys` has their names. */
export type RedactedSpec = WithAgents<Omit<MemberAgent, 'env'> & { env_keys: string[] }>;

type WithAgents<Agent> = Omit<TeamSpec, 'members'> & {
  members: (Omit<Member, 'agent'> & { agent: Agent | null })[];
};

export interface Team {
  id: string;
  name: string;
  /** 2 to 5 uppercase letters; the names of its tasks begin with it. */
  key: string;
  description: string;
  spec: RedactedSpec;
  version: number;
  /** Usernames, in order. */
  human_members: string[];
  /** A user's id. */
  created_by: string;
  created_at: string;
  updated_at: string;
}

/** How a member takes its steps: concurrently, one turn after the other, or when a person completes them. */
export type MemberKind = 'plain' | 'acp' | 'outside';

export function memberKind({ agent }: { agent: Pick<MemberAgent, 'protocol'> | null }): MemberKind {
  if (agent === null) return 'outside';
  return agent.protocol === 'acp' ? 'acp' : 'plain';
}

/** The member that takes steps without a `member_id`. */
export function defaultMember({
  leader_member_id,
  members,
}: Pick<TeamSpec, 'leader_member_id'> & { members: readonly Pick<Member, 'member_id'>[] }): string {
  return leader_member_id ?? members[0]!.member_id;
}
