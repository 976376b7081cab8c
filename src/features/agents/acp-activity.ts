/** What the record of an agent shows about its ACP session (pure). `progress.ts` has the progress of its work. */
import { observedBehavior } from '../../acp/acting.ts';
import { currentMode } from '../../acp/modes.ts';
import type { AcpState } from '../../acp/state.ts';
import type { Preset } from '../presets/rules/preset.ts';
import type { Activity, ObservedBehavior } from './rules.ts';

export interface SessionActivity {
  activity: Activity;
  asks: ObservedBehavior;
  /** Since when the session needs a sign-in. Unix milliseconds; null if it does not need one. */
  sign_in_since: number | null;
}

/** `stored`: what the record shows so far. `awaits_answer`: a review or elicitation of the session is pending. */
export function sessionActivity(
  state: AcpState,
  stored: { sign_in_since: number | null },
  { awaits_answer, preset, now_ms }: { awaits_answer: boolean; preset: Preset | null; now_ms: number },
): SessionActivity {
  return {
    activity: activityOf(state, awaits_answer),
    asks: observedAsks(state, preset),
    sign_in_since: signInSince(state, stored.sign_in_since, now_ms),
  };
}

function activityOf({ phase, turn, work }: AcpState, awaits_answer: boolean): Activity {
  if (phase === 'auth_required' || phase === 'failed' || awaits_answer) return 'needs_you';
  if (phase !== 'ready') return 'starting';
  return turn === null && !work.busy ? 'idle' : 'working';
}

/** Whether the agent asks for permission, derived from its tool calls and from the mode that it reports. */
function observedAsks(state: AcpState, preset: Preset | null): ObservedBehavior {
  const mode = currentMode(state);
  const is_acting = mode !== null && preset?.permission.acting_modes.includes(mode);
  return is_acting ? 'acts' : observedBehavior(state.acting);
}

/** An attempt to sign in does not end the wait, because it may be refused. */
function signInSince({ phase }: AcpState, stored: number | null, now_ms: number): number | null {
  if (phase === 'auth_required') return stored ?? now_ms;
  return phase === 'authenticating' ? stored : null;
}
