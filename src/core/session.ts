/** Types of a session, one execution of an agent: its record, states, exit, and what a node needs to start it. */
import type { StreamName } from './event.ts';

/** One execution of an agent's process, from start to exit. */
export interface Session {
  id: string;
  agent_id: string;
  node_id: string;
  /** Counts from 1 for the agent's first session. */
  number: number;
  state: SessionState;
  pid: number | null;
  exit_code: number | null;
  exit_signal: string | null;
  reason: EndReason | null;
  cleanup: Cleanup | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  stdout_bytes: number;
  stderr_bytes: number;
}

/**
 * starting → running → ended
 *
 * `starting`: the intent is committed, but the node has not reported yet. `ended`: the final status and all bytes are
 * committed.
 */
export const sessionStates = ['starting', 'running', 'ended'] as const;
export type SessionState = (typeof sessionStates)[number];

/** Why a session failed. Completed sessions have no reason. */
export const endReasons = [
  'exit_code',
  'signal',
  'spawn_failed',
  'workdir_refused',
  'exit_status_unknown',
  'host_restarted',
  'session_lost',
] as const;
export type EndReason = (typeof endReasons)[number];

/** A node's message for a `spawn_failed` that started nothing, so that it is safe to start again. */
export const START_INTERRUPTED = 'the start was interrupted before the command was started';

/** `proven`: the cgroup was empty. `swept`: two scans found nothing (a process with a cleared environment can hide). */
export const cleanups = ['proven', 'swept'] as const;
export type Cleanup = (typeof cleanups)[number];

/** How a session's main process ended, as its node observed it. */
export interface Exit {
  exit_code: number | null;
  exit_signal: string | null;
  /** Null for exit code 0. */
  reason: EndReason | null;
  /** A message for people, such as the shell's error, or null. */
  message: string | null;
}

export interface Leftover {
  pid: number;
  command: string;
}

/** What a node needs to start a session. Its record on disk has everything except `env`, `actor_token` and `step_input`. */
export interface Launch {
  session_id: string;
  plane_id: string;
  agent_id: string;
  agent_name: string;
  owner_id: string;
  /** Absolute real path; the wrapper checks again that it was not replaced by a link. */
  workdir: string;
  argv: string[];
  /** The preset whose state directories a sandbox makes available in the home folder, if any. */
  preset?: string | null;
  /** The team whose run the agent was created for. The directories then belong to the team and the owner alone. */
  team_id?: string | null;
  /** The agent's own variables, added to the node's environment. */
  env: Record<string, string>;
  /** The agent's credential for calls to the plane in this session. Absent if the actor API is disabled. */
  actor_token?: string;
  /**
   * For a session that runs a step: JSON in a file at `SVC_STEP_INPUT`, beside a file that the agent may write,
   * `SVC_STEP_OUTPUT`. Absent: the session runs no step.
   */
  step_input?: string;
  stdin: boolean;
  on_exit: 'kill' | 'keep';
}

export type StreamSizes = Record<StreamName, number>;
