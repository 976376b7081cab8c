/** What a turn's end and the service's notices are in words. */
import type { StopReason } from '@agentclientprotocol/sdk';

export type Tone = 'plain' | 'warning' | 'failure';

export interface Words {
  readonly text: string;
  readonly tone: Tone;
}

const stops: Record<StopReason, Words> = {
  end_turn: { text: 'Turn ended', tone: 'plain' },
  cancelled: { text: 'Turn cancelled', tone: 'plain' },
  max_tokens: { text: 'Stopped: the model reached its limit of tokens for one answer', tone: 'warning' },
  max_turn_requests: {
    text: 'Stopped: the turn reached its limit of requests to the model',
    tone: 'warning',
  },
  refusal: {
    text: 'The agent refused to go on. It may leave this prompt out of the conversation from here',
    tone: 'failure',
  },
};

export function stopWords(reason: string | null): Words {
  if (reason === null) return { text: 'Turn ended, and no reason was told', tone: 'warning' };
  return Object.hasOwn(stops, reason)
    ? stops[reason as StopReason]
    : { text: `Turn ended: ${reason}`, tone: 'warning' };
}

/** Notices that people need do nothing about. */
const quiet = ['events_truncated', 'output_resumed', 'recovered', 'agent_info'];
/** Notices after which the agent does not do what it was asked. */
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
