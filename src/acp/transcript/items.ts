/** The items of a transcript: messages, tool calls, permission requests, notices and other parts of a conversation. */
import type { AgentStatus } from '../../features/agents/rules.ts';
import type { Raw } from './bounded.ts';
import type { Call } from './calls.ts';
import type { Body } from './parts.ts';

interface Base {
  /** Stays the same while the item changes. */
  readonly key: string;
  /** The number of its first event. */
  readonly seq: number;
  /** Unix seconds. */
  readonly ts: number;
  /** The number of the turn that the item belongs to. */
  readonly turn: number | null;
  /** The sub-agent that the item comes from; null for the agent itself. */
  readonly subagent: string | null;
}

export interface UserMessage extends Base {
  readonly kind: 'user_message';
  readonly body: Body;
  /** Null if the message is known only from the agent's echo. */
  readonly prompt_id: string | null;
  /** The message's size in bytes if it is too large for the event, else null. */
  readonly too_large: number | null;
}

/** A message or a thought of the agent, which grows until `ended_ts`. */
export interface MessageItem extends Base {
  readonly kind: 'agent_message' | 'thought';
  readonly body: Body;
  /** The agent's id for it. */
  readonly message_id: string | null;
  readonly ended_ts: number | null;
}

/**
 * `cancelled`: the turn was cancelled before the call ended. `unfinished`: the turn ended, but the agent did not report the
 * end of the call.
 */
export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unfinished';

export interface Tool extends Base {
  readonly kind: 'tool';
  readonly call: Call;
  readonly status: ToolStatus;
  readonly ended_ts: number | null;
  /** The number of lines that its diffs add and remove. */
  readonly added: number;
  readonly removed: number;
}

export interface Option {
  readonly option_id: string;
  /** Chosen by the agent. */
  readonly name: string;
  readonly kind: string;
}

export type Outcome =
  | { readonly type: 'selected'; readonly option_id: string; readonly option: Option | null }
  | { readonly type: 'cancelled' }
  /** The agent withdrew the request. */
  | { readonly type: 'withdrawn' }
  /** The agent's process ended. */
  | { readonly type: 'gone' };

/** The sub-agent that made the request. */
export interface Requester {
  readonly id: string;
  /** Chosen by the agent. */
  readonly name: string | null;
  /** The request came from a session that the agent did not announce. */
  readonly unknown_session: boolean;
}

/** A sub-agent at work. Its items have its id in `subagent`; this item's own `subagent` is the parent. */
export interface Delegation extends Base {
  readonly kind: 'delegation';
  readonly id: string;
  readonly name: string | null;
  readonly description: string | null;
  /** ACP's state of the sub-agent's work. */
  readonly status: 'running' | 'requires_action' | 'idle' | 'unknown';
  readonly stop_reason: string | null;
  /** Number of tool calls in this turn. */
  readonly tool_calls: number;
  readonly unknown_session: boolean;
}

/** A message between the agent and its sub-agents. Null: the agent itself. */
export interface RelayedItem extends Base {
  readonly kind: 'relayed';
  readonly from: string | null;
  readonly to: string | null;
  readonly body: Body;
}

export interface Permission extends Base {
  readonly kind: 'permission';
  readonly review_id: string;
  readonly requester: Requester | null;
  readonly call: Call;
  /** Verbatim, in the agent's order. */
  readonly options: readonly Option[];
  /** Null while the request is pending according to the log. */
  readonly outcome: Outcome | null;
  /** Null while pending, and if nobody answered: withdrawn, ended with the process, or answered by the service. */
  readonly answered_by: string | null;
  readonly settled_ts: number | null;
  /** The answer did not reach the agent. */
  readonly undeliverable: boolean;
  /** The request's size in bytes if it is too large for the event, else null. The review record has more of it. */
  readonly too_large: number | null;
}

/** A form that the agent asks the user to fill in, or a URL to open. The elicitation record has the rest. */
export interface ElicitationItem extends Base {
  readonly kind: 'elicitation';
  readonly elicitation_id: string;
}

/** The end of a turn. */
export interface Stop extends Base {
  readonly kind: 'stop';
  /** ACP's `StopReason`, or any other value that the agent sent; null if it sent none. */
  readonly reason: string | null;
  /** Seconds since the prompt; null if unknown. */
  readonly seconds: number | null;
  /** The tool calls of the turn, and the lines that its completed ones added and removed. */
  readonly tools: number;
  readonly added: number;
  readonly removed: number;
  /** The tokens that the agent reports for the turn, or by which its context grew; null if it reports neither. */
  readonly tokens: number | null;
}

/** The status of the agent changed. */
export interface StatusChange extends Base {
  readonly kind: 'status';
  readonly status: AgentStatus;
  readonly session_id: string | null;
  readonly exit_code: number | null;
  readonly exit_signal: string | null;
  readonly reason: string | null;
}

/** A notice from the service or the agent. */
export interface Notice extends Base {
  readonly kind: 'notice';
  readonly code: string;
  readonly text: string;
  /** The other fields of its event. */
  readonly details: Raw;
}

/** A message of an unknown kind. */
export interface Unknown extends Base {
  readonly kind: 'unknown';
  readonly label: string;
  readonly raw: Raw;
  /** The message's size in bytes if it is too large for the event, else null. */
  readonly too_large: number | null;
}

/** Output of the agent that is not a message of the protocol. */
export interface OutputItem extends Base {
  readonly kind: 'output';
  readonly text: string;
  readonly lines: number;
  readonly omitted_chars: number;
}

export type Item =
  | UserMessage
  | MessageItem
  | Tool
  | Permission
  | ElicitationItem
  | Delegation
  | RelayedItem
  | Stop
  | StatusChange
  | Notice
  | Unknown
  | OutputItem;

export interface Turn {
  readonly n: number;
  readonly prompt_id: string;
  readonly prompt_seq: number;
  readonly started_ts: number;
  readonly ended_ts: number | null;
  /** Null while the turn is open, or if the agent reported no reason. */
  readonly stop_reason: string | null;
  /** When the turn was cancelled, or null. */
  readonly cancelled_ts: number | null;
}

/** One session of the agent, from the start to the end of its process. */
export interface Session {
  readonly session_id: string;
  readonly first_seq: number;
  readonly started_ts: number;
}
