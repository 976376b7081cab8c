/** The text and tone of turn ends and notices. */
import type { StopReason } from '@agentclientprotocol/sdk';

export type Tone = 'plain' | 'warning' | 'failure';

export interface StatusText {
  readonly text: string;
  readonly tone: Tone;
}

const stops: Record<StopReason, StatusText> = {
  end_turn: { text: 'Turn ended', tone: 'plain' },
  cancelled: { text: 'Turn cancelled', tone: 'plain' },
  max_tokens: { text: 'Stopped: the model reached its token limit for one answer', tone: 'warning' },
  max_turn_requests: {
    text: 'Stopped: the turn reached its limit of model requests',
    tone: 'warning',
  },
  refusal: {
    text: 'The agent refused to continue. It may leave this prompt out of the conversation from now on',
    tone: 'failure',
  },
};

export function stopText(reason: string | null): StatusText {
  if (reason === null) return { text: 'Turn ended; the agent gave no reason', tone: 'warning' };
  return Object.hasOwn(stops, reason)
    ? stops[reason as StopReason]
    : { text: `Turn ended: ${reason}`, tone: 'warning' };
}

/** Notices that need no action. */
const quiet = ['events_truncated', 'output_resumed', 'recovered', 'agent_info'];
/** Notices that the agent did not do what it was asked. */
const failures = [
  'prompt_failed',
  'turn_lost',
  'acp_initialize_failed',
  'acp_version_unsupported',
  'acp_session_failed',
  'permission_unreadable',
  'refused',
  'agent_error',
];

export function noticeTone(code: string): Tone {
  if (quiet.includes(code)) return 'plain';
  return failures.includes(code) ? 'failure' : 'warning';
}
