/**
 * Tracks the work of an agent that uses ACP v2, and decides when its turn ends (pure). In v2, the response to a prompt only
 * accepts it. The end is a `state_update`, which names no prompt, may be repeated, and is also sent for work that the agent
 * started without a prompt.
 */
import type { RpcError } from '../message.ts';

export interface End {
  stop_reason: string | null;
  error: RpcError | null;
}

export interface Work {
  /** The agent's last `state_update` was not `idle`. */
  busy: boolean;
  /** The agent accepted the prompt of the turn. This field and those below describe the current turn. */
  accepted: boolean;
  /** The agent has been busy since the prompt was sent. */
  begun: boolean;
  /** The agent repeated the prompt as part of the conversation. */
  echoed: boolean;
  cancelled: boolean;
  /** How the work ended, if the agent reported that before it accepted the prompt. */
  end: End | null;
}

export const idleWork: Work = {
  busy: false,
  accepted: false,
  begun: false,
  echoed: false,
  cancelled: false,
  end: null,
};

/** A prompt was sent. */
export function withPrompt({ busy }: Work): Work {
  return { ...idleWork, busy };
}

/** The agent is working, or needs someone's input to continue. */
export function markBusy(work: Work, in_turn: boolean): Work {
  if (work.busy && (work.begun || !in_turn)) return work;
  return { ...work, busy: true, ...(in_turn && { begun: true, end: null }) };
}

/**
 * The agent is idle. `ends`: this ends the turn. It does not if the update was already on its way when the prompt was sent.
 * In that case, the prompt was neither accepted nor echoed, or no work on it was reported.
 */
export function markIdle(work: Work, end: End): { work: Work; ends: boolean } {
  const now_idle = work.busy ? { ...work, busy: false } : work;
  const done = work.begun || work.cancelled;
  if (work.accepted) return { work: now_idle, ends: done };
  if (done && (work.echoed || work.cancelled)) return { work: { ...now_idle, end }, ends: false };
  return { work: work.begun ? { ...now_idle, begun: false } : now_idle, ends: false };
}
