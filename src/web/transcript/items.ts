/** What a conversation is made of, as screens show it: one item for each thing that was said, done, asked or told. */
import type { AgentStatus } from '../../domain/agent.ts';
import type { Call } from './calls.ts';
import type { Body } from './parts.ts';
import type { Raw } from './reading.ts';

interface Base {
  /** Stays the same while the item changes. */
  readonly key: string;
  /** Of the first event of it. */
  readonly seq: number;
  /** Unix seconds. */
  readonly ts: number;
  /** The number of the turn that it belongs to. */
  readonly turn: number | null;
}

export interface UserMessage extends Base {
  readonly kind: 'user_message';
  readonly body: Body;
  /** Null for what the agent says that somebody said. */
  readonly prompt_id: string | null;
  /** Its size in bytes, where it is too large to be here. */
  readonly too_large: number | null;
}

/** A message or a thought of the agent's: grows until `ended_ts`. */
export interface Spoken extends Base {
  readonly kind: 'agent_message' | 'thought';
  readonly body: Body;
  /** What the agent calls it. */
  readonly message_id: string | null;
  readonly ended_ts: number | null;
}

/** `cancelled`: the turn was, before it ended. `unfinished`: the turn ended, and its end was not told. */
export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'unfinished';

export interface Tool extends Base {
  readonly kind: 'tool';
  readonly call: Call;
  readonly status: ToolStatus;
  readonly ended_ts: number | null;
  /** Lines that its diffs add and remove. */
  readonly added: number;
  readonly removed: number;
}

export interface Option {
  readonly option_id: string;
  /** The agent's own words. */
  readonly name: string;
  readonly kind: string;
}

export type Outcome =
  | { readonly type: 'selected'; readonly option_id: string; readonly option: Option | null }
  | { readonly type: 'cancelled' }
  /** The agent took the question back. */
  | { readonly type: 'withdrawn' }
  /** The agent's session ended. */
  | { readonly type: 'gone' };

export interface Permission extends Base {
  readonly kind: 'permission';
  readonly review_id: string;
  readonly call: Call;
  /** Verbatim, in the agent's order. */
  readonly options: readonly Option[];
  /** Null while it waits for its answer, as far as the log tells. */
  readonly outcome: Outcome | null;
  /** Null: the service itself. */
  readonly answered_by: string | null;
  readonly settled_ts: number | null;
  /** The answer did not reach the agent. */
  readonly undeliverable: boolean;
  /** Its size in bytes, where it is too large to be here: the review itself has more. */
  readonly too_large: number | null;
}

/** The end of a turn. */
export interface Stop extends Base {
  readonly kind: 'stop';
  /** ACP's `StopReason`, or whatever else the agent said; null where it said none. */
  readonly reason: string | null;
  /** Seconds from the prompt, where that is known. */
  readonly seconds: number | null;
}

/** The agent's process began or ended. */
export interface StatusChange extends Base {
  readonly kind: 'status';
  readonly status: AgentStatus;
  readonly session_id: string | null;
  readonly exit_code: number | null;
  readonly exit_signal: string | null;
  readonly reason: string | null;
}

/** Something that the service has to say. */
export interface Notice extends Base {
  readonly kind: 'notice';
  readonly code: string;
  readonly text: string;
  /** Its further fields. */
  readonly details: Raw;
}

/** What this page knows no form for. */
export interface Unknown extends Base {
  readonly kind: 'unknown';
  readonly label: string;
  readonly raw: Raw;
  /** Its size in bytes, where it is too large to be here. */
  readonly too_large: number | null;
}

/** What the agent printed that is no message of the protocol. */
export interface Printed extends Base {
  readonly kind: 'output';
  readonly text: string;
  readonly lines: number;
  readonly cut: number;
}

export type Item =
  | UserMessage
  | Spoken
  | Tool
  | Permission
  | Stop
  | StatusChange
  | Notice
  | Unknown
  | Printed;

export interface Turn {
  readonly n: number;
  readonly prompt_id: string;
  readonly prompt_seq: number;
  readonly started_ts: number;
  readonly ended_ts: number | null;
  /** Null while it goes on, and where none was told. */
  readonly stop_reason: string | null;
  /** When somebody cancelled it. */
  readonly cancelled_ts: number | null;
}

/** One life of the agent's process. */
export interface Session {
  readonly session_id: string;
  readonly first_seq: number;
  readonly started_ts: number;
}
