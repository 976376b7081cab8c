/** How agents report the work of their sub-agents: announcements of sessions, and tool calls that launch a sub-agent. */
import { asRecord, asString, type Fields, isRecord } from './json.ts';

/** ACP's states of a session's work, and `unknown` if none was reported. */
export const subagentStatuses = ['running', 'requires_action', 'idle', 'unknown'] as const;
export type SubagentStatus = (typeof subagentStatuses)[number];

export interface SubagentWork {
  status: SubagentStatus;
  /** Only for `idle`: ACP's `StopReason`, `error`, or any other value the agent sent. */
  stop_reason: string | null;
}

/** A `subagent_update`. Undefined fields were not mentioned; null clears them. */
export interface Announcement {
  ids: readonly (string | null)[];
  name: string | null | undefined;
  description: string | null | undefined;
  work: SubagentWork | undefined;
}

/** What a tool call reports about the sub-agent that it launches. Null fields were not mentioned. */
export interface Launch {
  id: string | null;
  /** The kind of the sub-agent, which Claude, OpenCode and Qwen name in the input of the call. */
  name: string | null;
  description: string | null;
  title: string | null;
  work: SubagentWork | null;
}

export const unreportedWork: SubagentWork = { status: 'unknown', stop_reason: null };

const ended = (stop_reason: string | null): SubagentWork => ({ status: 'idle', stop_reason });
const running: SubagentWork = { status: 'running', stop_reason: null };

/** Values that mean that a sub-agent has ended: work states in drafts of the protocol, and statuses of tool calls. */
const endedStates = new Map<unknown, SubagentWork>([
  ['completed', ended('end_turn')],
  ['failed', ended('error')],
  ['cancelled', ended('cancelled')],
]);

/** Drafts of the protocol use `subagentSessionId`, `name` and `task`. */
export function readAnnouncement(update: Fields): Announcement {
  const { sessionId, subagentSessionId, title = update.name, description = update.task, state } = update;
  return {
    ids: [asString(sessionId), asString(subagentSessionId)],
    name: title === undefined ? undefined : nonEmptyString(title),
    description: description === undefined ? undefined : nonEmptyString(description),
    work: state === undefined ? undefined : readWork(state),
  };
}

/** `call`: an update, or the tool call of a permission request. */
export function readLaunch({ toolCallId, rawInput, title, status }: Fields): Launch {
  const { subagent_type, description } = asRecord(rawInput);
  return {
    id: asString(toolCallId),
    name: nonEmptyString(subagent_type),
    description: nonEmptyString(description),
    title: nonEmptyString(title),
    work: readCallWork(status),
  };
}

/**
 * Candidate ids of the tool call that launched the author of a message, as marked by Claude's adapter or by Qwen. `source`: an update,
 * or the tool call of a permission request.
 */
export function readLaunchCallIds(source: unknown): (string | null)[] {
  const meta = asRecord(asRecord(source)._meta);
  return [asString(asRecord(meta.claudeCode).parentToolUseId), asString(meta.parentToolCallId)];
}

/** The kind of a sub-agent that is known only from marks on its messages. */
export function readMarkedName(about: Fields): string | null {
  return nonEmptyString(asRecord(about._meta).subagentType);
}

function readWork(state: unknown): SubagentWork {
  const status = isRecord(state) ? state.state : state;
  if (status === 'running' || status === 'requires_action') return { status, stop_reason: null };
  if (status === 'idle') return ended(nonEmptyString(asRecord(state).stopReason));
  return endedStates.get(status) ?? unreportedWork;
}

function readCallWork(status: unknown): SubagentWork | null {
  if (status === 'pending' || status === 'in_progress') return running;
  return status === 'completed' || status === 'failed' ? endedStates.get(status)! : null;
}

/** Null unless the value is a string that is not empty. */
function nonEmptyString(value: unknown): string | null {
  return asString(value) || null;
}
