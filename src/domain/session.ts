import type { StreamName } from './event.ts';

/** One launch of an agent's process, start to exit. */
export interface Session {
  id: string;
  agent_id: string;
  node_id: string;
  /** 1 for the agent's first session. */
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

/** `starting`: the intent is committed, the node has not said yet. `ended`: the final status is committed, and every byte. */
export const sessionStates = ['starting', 'running', 'ended'] as const;
export type SessionState = (typeof sessionStates)[number];

/** Why a session failed; absent on completed ones. */
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

/** What a node says of a `spawn_failed` that left nothing, and will leave nothing: it may be begun anew without a doubt. */
export const START_INTERRUPTED = 'the start was interrupted before the command was started';

/** `proven`: a cgroup was seen empty. `swept`: two scans found nothing (an escapee with a cleared environment can hide). */
export const cleanups = ['proven', 'swept'] as const;
export type Cleanup = (typeof cleanups)[number];

/** How a session's main process ended, as its node observed it. */
export interface Exit {
  exit_code: number | null;
  exit_signal: string | null;
  /** Null for exit code 0. */
  reason: EndReason | null;
  /** Human words for the reason, for example the shell's own complaint; null when there are none. */
  message: string | null;
}

export interface Leftover {
  pid: number;
  command: string;
}

/** What a node needs to launch a session. Everything but `env`, `actor_token` and `step_input` stays in its record on the node's disk. */
export interface Launch {
  session_id: string;
  plane_id: string;
  agent_id: string;
  agent_name: string;
  owner_id: string;
  /** Absolute real path; the wrapper checks again that it has not been swapped for a link. */
  workdir: string;
  argv: string[];
  /** Which directories of the home a sandbox opens for it; absent or null: none. */
  preset?: string | null;
  /** The agent's own variables, on top of the node's environment. */
  env: Record<string, string>;
  /** What the agent proves itself with to the plane, for this session; absent: the actor surface is switched off. */
  actor_token?: string;
  /**
   * For a session that takes a step: JSON in a file that the agent finds by `SVC_STEP_INPUT`, beside one that it may write,
   * `SVC_STEP_OUTPUT`. Absent: it takes none.
   */
  step_input?: string;
  stdin: boolean;
  on_exit: 'kill' | 'keep';
}

export type StreamSizes = Record<StreamName, number>;
