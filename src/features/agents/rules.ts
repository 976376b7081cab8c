/** An agent's states, its record as clients see it, and what remains of a forgotten agent. */
import type { Exit, Leftover } from '../../core/session.ts';

export const agentStatuses = ['created', 'running', 'completed', 'failed', 'cancelled'] as const;
export type AgentStatus = (typeof agentStatuses)[number];

export const activities = ['starting', 'idle', 'working', 'needs_you', 'quiet'] as const;
export type Activity = (typeof activities)[number];

/** What a running agent waits for. `question`: a form, a link, or the question of its step. */
export const agentNeeds = ['permission', 'question', 'sign_in'] as const;
export type AgentNeed = (typeof agentNeeds)[number];

export const worktreeModes = ['use_existing', 'create_worktree'] as const;
export type WorktreeMode = (typeof worktreeModes)[number];

/** The mode of a request that names none: a repository alone is a request for a worktree of it. */
export function defaultWorktreeMode(worktree_repo: string | null): WorktreeMode {
  return worktree_repo ? 'create_worktree' : 'use_existing';
}

export const protocols = ['auto', 'acp', 'plain'] as const;
export type Protocol = (typeof protocols)[number];
export const restartPolicies = ['never', 'on_failure'] as const;
export type RestartPolicy = (typeof restartPolicies)[number];
export const onExits = ['kill', 'keep'] as const;
export type OnExit = (typeof onExits)[number];

/** The statuses with which a run ends. */
export const runEnds = ['completed', 'failed', 'cancelled'] as const;
export type RunEnd = (typeof runEnds)[number];

export const pendingKinds = ['start', 'stop', 'restart'] as const;
export type PendingKind = (typeof pendingKinds)[number];

/** What a forgotten agent leaves on its node. */
export interface LeftBehind {
  agent_id: string;
  name: string;
  node_id: string;
  workdir: string;
  worktree_mode: WorktreeMode;
  worktree_repo: string | null;
  worktree_branch: string | null;
  /** Sessions that are not known to have ended. The pid is null if the node never reported it. */
  sessions: { id: string; pid: number | null }[];
  /** Processes left by the last session that ended, with `on_exit: keep`. */
  leftovers: { pid: number; command: string }[];
}
/** `ask`: the preset sets up each session so that the agent asks before it acts. `agent`: the agent uses its own mode. */
export const permissionModes = ['ask', 'agent'] as const;
export type PermissionMode = (typeof permissionModes)[number];
/**
 * Observed behavior. `asks`: the agent acted only with permission. `acts`: it wrote, ran or fetched something without it.
 */
export const observedAsks = ['asks', 'acts', 'unknown'] as const;
export type ObservedBehavior = (typeof observedAsks)[number];

/** What the latest session reported about its work. */
export interface Progress {
  /** One line: what it does or asks, or, if it failed, the last line that it printed. */
  now: string | null;
  plan: { done: number; total: number } | null;
  /** Tokens in the context of the model, and the cost so far. */
  usage: { used: number; size: number; cost: { amount: number; currency: string } | null } | null;
}

/** The size of the changes in the worktree. */
export interface DiffSize {
  files: number;
  added: number;
  removed: number;
}

export interface Summary extends Progress {
  diff: DiffSize | null;
}

/** An agent's record as clients see it. */
export interface Agent {
  id: string;
  name: string;
  workdir: string;
  command: string;
  argv: string[] | null;
  protocol: Protocol;
  preset: string | null;
  permission_mode: PermissionMode;
  asks: ObservedBehavior;
  worktree_mode: WorktreeMode;
  worktree_repo: string | null;
  worktree_ref: string | null;
  worktree_branch: string | null;
  node_id: string;
  owner_id: string;
  status: AgentStatus;
  activity: Activity | null;
  /** The status with which its run ended, if that is what stopped it. Its own status is then `cancelled`. */
  stopped_by_run: RunEnd | null;
  exit_code: number | null;
  exit_signal: string | null;
  reason: string | null;
  session_id: string | null;
  session_count: number;
  labels: Record<string, string>;
  env_keys: string[];
  restart_policy: RestartPolicy;
  /** When the restart policy starts it again after a failure; null if it does not. */
  restart_at: string | null;
  team_id: string | null;
  run_id: string | null;
  member_id: string | null;
  pending_reviews: number;
  pending_elicitations: number;
  /** Steps whose question it asks. */
  pending_questions: number;
  sign_in_since: string | null;
  /** What it waits for, of the kinds that people answer; null if it waits for nothing. */
  needs_you: AgentNeed | null;
  summary: Summary;
  last_seq: number;
  last_event_at: string | null;
  stale_since: string | null;
  created_at: string;
  updated_at: string;
  started_at: string | null;
  ended_at: string | null;
  /** When it was archived; null if it is not. A start makes it null. */
  archived_at: string | null;
  stdin: boolean;
  on_exit: OnExit;
  leftovers: Leftover[];
  cleanup: 'proven' | 'swept' | null;
  /** The request that is carried out once the agent's node answers. */
  pending: PendingKind | null;
}

export function isFinal(status: AgentStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** The states of an agent that a request can wait for. */
export const agentMilestones = ['ended', 'idle', 'needs_you'] as const;
export type AgentMilestone = (typeof agentMilestones)[number];

export function hasReached(
  agent: Pick<Agent, 'status' | 'activity' | 'needs_you'>,
  milestone: AgentMilestone,
): boolean {
  // A final status is that of the previous session while the next one starts.
  if (milestone === 'ended') return isFinal(agent.status) && agent.activity === null;
  return agent.activity === milestone || (milestone === 'needs_you' && agent.needs_you !== null);
}

/** The most urgent thing that people have to do for an agent; null if there is nothing. */
export function agentNeed({
  pending_reviews,
  pending_elicitations,
  pending_questions,
  sign_in_since,
}: Pick<
  Agent,
  'pending_reviews' | 'pending_elicitations' | 'pending_questions' | 'sign_in_since'
>): AgentNeed | null {
  if (pending_reviews > 0) return 'permission';
  if (pending_elicitations + pending_questions > 0) return 'question';
  return sign_in_since === null ? null : 'sign_in';
}

const legal: Record<AgentStatus, readonly AgentStatus[]> = {
  created: ['running', 'failed', 'cancelled'],
  running: ['completed', 'failed', 'cancelled'],
  completed: ['running', 'failed', 'cancelled'],
  failed: ['running', 'failed', 'cancelled'],
  cancelled: ['running', 'failed', 'cancelled'],
};

/**
 * Returns the next status. Throws if the transition is illegal, which is a bug and must not be stored.
 *
 * ```
 *  created ──process started──▶ running ──exit code 0──▶ completed ─┐
 *     │                            ├──other exit, lost──▶ failed ───┤ started again: ──▶ running
 *     │                            └──stop accepted──▶ cancelled ───┘
 *     └──start failed──▶ failed, or cancelled if a stop was accepted before the process started
 * ```
 *
 * A start that fails without a process leads from any status except `running` to `failed` or `cancelled`.
 */
export function transition(from: AgentStatus, to: AgentStatus): AgentStatus {
  if (!legal[from].includes(to)) throw new Error(`illegal agent transition ${from} -> ${to}`);
  return to;
}

/** The final status of a session: `cancelled` after an accepted stop, whatever the exit code. */
export function finalStatus(exit: Exit, stop_accepted: boolean): AgentStatus {
  if (stop_accepted) return 'cancelled';
  return exit.reason === null && exit.exit_code === 0 ? 'completed' : 'failed';
}
