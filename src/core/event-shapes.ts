/**
 * The fields of every event and the codes of `error` events, as data. `docs/reference/events.md` is generated from it;
 * `test/architecture/docs.test.ts` checks that no code is missing.
 */
import type { EventType } from './event.ts';
import type { WarningCode } from './node.ts';
import type { EndReason } from './session.ts';

/** Fields besides `type`, `agent_id`, `session_id`, `seq` and `ts`. `?` marks those that can be absent. */
export const eventFields = {
  output: {
    stream: '`stdout` or `stderr`',
    data: 'the text, or its bytes in base64',
    'partial?': '`true`: the line continues in the next event of this stream',
    'encoding?': '`base64` if the bytes are not UTF-8',
  },
  status: {
    status: 'the new status of the agent',
    previous_status: 'the status before',
    'activity?': 'what the agent does: `starting`, `idle`, `working`, `needs_you` or `quiet`',
    'exit_code?': 'the exit code, if the process exited',
    'exit_signal?': 'the signal, if a signal ended the process',
    'reason?': 'why the session failed; see the codes below',
  },
  acp_event: {
    direction: '`from_agent` or `to_agent`',
    'method?': 'the method of a request or notification',
    'response_to?': 'the id of the request that this message answers',
    payload: 'the ACP message as it was sent; null if it exceeds 1 MiB',
    'truncated?': '`true` if the payload exceeds 1 MiB',
    'size?': 'with `truncated`: the size of the message in bytes',
    'request_id?': 'with `truncated`: the id of the request, if the message is one',
    'review_id?': 'the permission review that this message opens or answers',
    'elicitation_id?': 'the elicitation that this message opens or answers',
    'answered_by?': 'who answered the review or elicitation; null for the service itself',
    'subagent?': 'the id of the sub-agent that the message comes from',
    'unknown_session?': '`true` if the agent did not announce this sub-agent',
    'replay?': '`true` if the agent repeats its earlier conversation',
    'accepted?': 'ACP v2: `true` if the agent accepted the prompt',
    'turn_ended?': 'ACP v2: `{prompt_id, stop_reason}` of the turn that ends with this message',
  },
  error: {
    code: 'one of the codes below',
    error: 'a message for people',
    '…?': 'details, by code',
  },
} as const satisfies Record<EventType, Record<string, string>>;

/** Codes of `error` events that are stored in an agent's log. */
export const errorEvents = {
  agent_processes_survived:
    'Processes of the earlier session are still running, so the agent is not started.',
  acp_initialize_failed: 'The agent rejected the first message of ACP.',
  acp_session_failed: 'The agent could not open a session.',
  acp_sessions_unsupported: 'The agent speaks ACP v2, but does not support sessions.',
  acp_silent:
    'The agent has not answered `initialize` within a minute and may not speak ACP, or it has not opened a conversation within five minutes.',
  acp_version_unsupported: 'The agent speaks a version of ACP that svc does not support.',
  auth_required: 'The agent needs a sign-in first. `methods` lists how.',
  cancel_ignored: 'The turn was cancelled, but the agent continues it. `prompt_id` names the prompt.',
  context_lost: 'The agent starts a new session without its earlier conversation.',
  elicitation_undeliverable: 'The answer to `elicitation_id` did not reach the agent.',
  elicitation_unreadable: 'A request for input cannot be shown in full, and was rejected.',
  frame_too_large: 'A line is too long for an ACP message. It is shown as output.',
  message_unreadable: 'An ACP message could not be read. It is in the log, but has no effect.',
  log_gap: 'The events `from` to `to` do not exist: the database was restored from a backup.',
  node_unreachable: 'The node `node_id` does not answer. The agent keeps running there.',
  output_incomplete: 'A step ended with the part of its output that can be read, because its log is damaged.',
  permission_mode_missing: 'The agent does not offer the `mode` in which it would ask before it acts.',
  permission_mode_refused: 'The agent rejected the mode in which it would ask before it acts.',
  permission_mode_unconfirmed: 'The agent has not confirmed the mode in which it would ask before it acts.',
  permission_unreadable: 'A permission request is not valid ACP, and was rejected.',
  prompt_failed: 'The agent answered the prompt `prompt_id` with an error.',
  recovered: 'The session was found on its node, but the database did not know it.',
  review_undeliverable: 'The answer to `review_id` did not reach the agent.',
  stdin_lost: 'The input of the session was lost in a restore. Restart the agent.',
  turn_lost: 'The session ended during the turn of `prompt_id`.',
} as const;

/** Codes of warnings that a node reports about a session. */
export const warningEvents = {
  output_paused:
    'The disk is nearly full, so output is held back. `free_bytes` and `total_bytes` give its state.',
  output_resumed: 'The disk has space again.',
  output_truncated: 'A spool file became shorter than what was read from it.',
  pump_restarted: 'The process that writes `stream` to its spool file was killed and started again.',
  feeder_restarted: 'The process that feeds stdin was killed.',
} as const satisfies Record<WarningCode, string>;

/**
 * Reasons of a failed session, in its `status` event. If there is a message, the reason is also the code of an `error`
 * event.
 */
export const failureReasons = {
  exit_code: 'The process exited with a code other than 0.',
  signal: 'A signal ended the process.',
  spawn_failed: 'The command could not be started.',
  workdir_refused: 'The workdir is missing or not allowed.',
  exit_status_unknown: 'The process has ended, but its exit status cannot be known.',
  host_restarted: 'The machine was restarted while the process ran.',
  session_lost: "The node no longer has the session's files.",
} as const satisfies Record<EndReason, string>;

/** Codes of `error` events that are sent on one connection and not stored. */
export const streamErrors = {
  events_truncated: 'Events before `first_available` are no longer kept. The stream continues there.',
  reset:
    'The position is unknown, for example after a restore. The stream continues after `head`: load the records again.',
} as const;
