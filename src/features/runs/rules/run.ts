/** The records of runs and steps, and their states. */
import { truncateText } from '../../../acp/json.ts';
import type { AgentStatus } from '../../agents/rules.ts';
import { memberKind, type RedactedSpec, type StepCondition, type TeamSpec } from '../../teams/rules/team.ts';

export const runStatuses = [
  'pending',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
] as const;
export type RunStatus = (typeof runStatuses)[number];

export const stepStatuses = [
  'pending',
  'ready',
  'running',
  'input_required',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const;
export type StepStatus = (typeof stepStatuses)[number];

/** The record of a run in the API. */
export interface Run {
  id: string;
  number: number;
  team_id: string;
  task_id: string;
  status: RunStatus;
  /** The team's spec when the run was created. */
  spec: RedactedSpec;
  input: Record<string, unknown>;
  /** Any JSON value; null if there is none (yet). */
  output: unknown;
  error: string | null;
  /** The attempt of the run: 1, and one more after each restart. */
  attempt: number;
  version: number;
  /** Why a person should look at the run although it continues, or null. */
  attention: string | null;
  created_by: string;
  /** The username; null if the user was deleted. */
  created_by_name: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
}

/** A run as the list of the runs of all teams shows it. */
export interface ListedRun extends Omit<Run, 'spec' | 'input' | 'output'> {
  team_name: string;
  /** `runTitle` of its input. */
  title: string | null;
}

/** The record of a step in the API. */
export interface Step {
  run_id: string;
  step_key: string;
  member_id: string;
  depends_on: string[];
  when: StepCondition;
  prompt: string;
  status: StepStatus;
  input: unknown;
  output: unknown;
  error_text: string | null;
  /** The current attempt of the step; 0 before the first. */
  attempt: number;
  max_attempts: number;
  timeout_seconds: number | null;
  agent_id: string | null;
  started_at: string | null;
  ended_at: string | null;
  waiting_since: string | null;
  /** The last answer, or null. */
  answer: unknown;
  /** A username or the id of an actor; null while the step waits, and if nobody answered its last question. */
  answered_by: string | null;
}

/** A step that waits for an answer, as the list of all of them shows it. */
export interface WaitingStep {
  team_id: string;
  team_name: string;
  run_id: string;
  run_number: number;
  step_key: string;
  member_id: string;
  /** The agent of the current attempt; null for a member without one. */
  agent_id: string | null;
  /** The current attempt of the step. */
  attempt: number;
  question: string;
  waiting_since: string;
}

/** A run that is waiting for a person, but not at any step, as the list of all of them shows it. */
export interface WaitingRun {
  team_id: string;
  team_name: string;
  run_id: string;
  run_number: number;
  /** The version of the run. */
  version: number;
  reason: string;
  waiting_since: string;
}

/** Lists show a title on one line. */
const TITLE_CHARS_MAX = 200;

/**
 * The title of a run: the first line of the input's `title`, otherwise of its `prompt` or `task`, cut to 200 characters. Null if
 * none of them is a text.
 */
export function runTitle({ title, prompt, task }: Record<string, unknown>): string | null {
  for (const value of [title, prompt, task]) {
    if (typeof value !== 'string' || value.trim() === '') continue;
    return truncateText(value.trim().split('\n')[0]!.trimEnd(), TITLE_CHARS_MAX);
  }
  return null;
}

/** What was deleted with a run, or would be. */
export interface RunDeletion {
  /** The id of the run. */
  id: string;
  /** Ids of the deleted agents. */
  agents: string[];
  worktrees_kept: { agent_id: string; node_id: string; workdir: string; reason: string }[];
  /** Branches that were kept although their worktrees were removed. */
  branches_kept: { agent_id: string; node_id: string; branch: string; reason: string }[];
}

/** A participant of a run in the API: a member of the team, or a person. */
export interface RunMember {
  actor_id: string;
  /** Null for a person, like `agent_id`, `node_id` and `status`. */
  member_id: string | null;
  role: 'leader' | 'worker' | 'human';
  /** Null before the run has created the agent, and for a member without an agent. */
  agent_id: string | null;
  node_id: string | null;
  /** Status of the agent. */
  status: AgentStatus | null;
  pending_messages: number;
}

/** The participants of a run in the API. */
export interface RunMembers {
  run_id: string;
  team_id: string;
  /** Without a leader, the first member, with its role as a worker. */
  leader: RunMember;
  /** All participants: members in the order of the spec, then humans by name. */
  members: RunMember[];
}

/**
 * What ends a run after its last step. `steps`: the end of the last step. `leader`: the leader's agent, which is prompted in
 * rounds. `outside`: a command, for a run that began without steps and whose leader has no agent.
 */
export type RunMode = 'steps' | 'leader' | 'outside';

export function runMode({ steps, members, leader_member_id }: TeamSpec | RedactedSpec): RunMode {
  if (steps.length > 0) return 'steps';
  const leader = members.find(({ member_id }) => member_id === leader_member_id);
  return leader && memberKind(leader) !== 'outside' ? 'leader' : 'outside';
}

const overSteps: readonly StepStatus[] = ['completed', 'failed', 'cancelled', 'skipped'];
const overRuns: readonly RunStatus[] = ['completed', 'failed', 'cancelled'];

export function isStepOver({ status }: { status: StepStatus }): boolean {
  return overSteps.includes(status);
}

export function isRunOver({ status }: { status: RunStatus }): boolean {
  return overRuns.includes(status);
}
