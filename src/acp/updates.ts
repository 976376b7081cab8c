/**
 * Reads a `session/update` into a typed value, for `fold.ts`, the CLI and the web UI. Fields of an unexpected type count as
 * missing, and unknown kinds become `{ kind: 'unknown' }`. `toV1Update` first translates an update of ACP v2.
 */
import type { SessionUpdate as V1 } from '@agentclientprotocol/sdk';
import type { SessionUpdate as V2 } from '@agentclientprotocol/sdk/experimental/v2';
import { asNumber, asRecord, asRecords, asString, type Fields } from './json.ts';
import { type Cost, type ReportedSettings, readCost, readSettings } from './settings.ts';
import { type Announcement, readAnnouncement } from './subagent-reports.ts';
import { readToolCall, type ToolCall } from './tool-calls.ts';
import { messageBlocks } from './v2/reading.ts';

/** Every update of v1, and those that exist only in v2 or in a draft of the protocol. */
type UpdateName =
  | V1['sessionUpdate']
  | Extract<V2['sessionUpdate'], string>
  | 'subagent_update'
  | 'session_message'
  | 'session_message_chunk';

export type MessageKind = 'agent_message' | 'thought';

export type Update =
  /** A part of a message. */
  | { kind: 'chunk'; message_kind: MessageKind; message_id: string | null; block: unknown }
  /** A whole message, which replaces its chunks; `blocks` is null if the chunks are kept. */
  | {
      kind: 'message';
      message_kind: MessageKind;
      message_id: string | null;
      blocks: readonly Fields[] | null;
    }
  /** The agent's echo of the user's messages. */
  | { kind: 'user_message'; blocks: readonly unknown[] }
  /** A message between the agent and its sub-agents. `blocks` is null if a complete message has no list of blocks. */
  | {
      kind: 'session_message';
      message_id: string | null;
      from: string | null;
      to: string | null;
      is_chunk: boolean;
      blocks: readonly unknown[] | null;
    }
  /** `begins`: a new call, even if its id was used before. `appends`: the content is added to that of the call. */
  | { kind: 'tool_call'; operation: 'begins' | 'changes' | 'appends'; call: ToolCall }
  /** The output of a command, which tool calls refer to. Fields that the update omits are undefined. */
  | {
      kind: 'terminal';
      terminal_id: string | null;
      command: unknown;
      output: unknown;
      exit_status: unknown;
      data: unknown;
    }
  | { kind: 'plan'; entries: readonly Fields[] }
  | { kind: 'commands'; commands: readonly Fields[] }
  | { kind: 'mode'; mode_id: string | null }
  | { kind: 'settings'; settings: ReportedSettings }
  /** Undefined if the update omits it; null, which clears the title, for anything but a string. */
  | { kind: 'title'; title: string | null | undefined }
  | { kind: 'usage'; used: number | null; size: number | null; cost: Cost | null }
  | { kind: 'subagent'; announcement: Announcement }
  /** The state of the session's work changed. The state itself is not read here. */
  | { kind: 'work' }
  | { kind: 'notice'; severity: string | null; title: string | null; description: string | null }
  /** The agent is summarizing its context. */
  | { kind: 'compaction'; status: string | null; error: string | null }
  | { kind: 'compaction_summary' }
  | { kind: 'unknown' };

/**
 * The update in a `session/update`, as the agent sent it; empty for other messages. `payload`: the message, from an
 * `acp_event`.
 */
export function rawUpdate(payload: unknown): Fields {
  return asRecord(asRecord(asRecord(payload).params).update);
}

/** `update`: an update of ACP v1, or of v2 after `toV1Update`. */
export function readUpdate(update: Fields): Update {
  const { sessionUpdate, content, messageId } = update;
  const message_id = asString(messageId);
  switch (sessionUpdate as UpdateName) {
    case 'agent_message_chunk':
      return { kind: 'chunk', message_kind: 'agent_message', message_id, block: content };
    case 'agent_thought_chunk':
      return { kind: 'chunk', message_kind: 'thought', message_id, block: content };
    case 'agent_message':
      return { kind: 'message', message_kind: 'agent_message', message_id, blocks: messageBlocks(update) };
    case 'agent_thought':
      return { kind: 'message', message_kind: 'thought', message_id, blocks: messageBlocks(update) };
    case 'user_message':
      return { kind: 'user_message', blocks: messageBlocks(update) ?? [] };
    case 'user_message_chunk':
      return { kind: 'user_message', blocks: [content] };
    case 'session_message':
      return sessionMessage(update, false, Array.isArray(content) ? content : null);
    case 'session_message_chunk':
      return sessionMessage(update, true, [content]);
    case 'tool_call':
      return { kind: 'tool_call', operation: 'begins', call: readToolCall(update) };
    case 'tool_call_update':
      return { kind: 'tool_call', operation: 'changes', call: readToolCall(update) };
    case 'tool_call_content_chunk':
      return {
        kind: 'tool_call',
        operation: 'appends',
        call: readToolCall({ ...update, content: [content] }),
      };
    case 'terminal_update':
    case 'terminal_output_chunk':
      return terminal(update);
    default:
      return readReport(update);
  }
}

/** Updates about the session itself. */
function readReport(update: Fields): Update {
  switch (update.sessionUpdate as UpdateName) {
    case 'plan':
      return { kind: 'plan', entries: asRecords(update.entries) };
    case 'available_commands_update':
      return { kind: 'commands', commands: asRecords(update.availableCommands) };
    case 'current_mode_update':
      return { kind: 'mode', mode_id: asString(update.currentModeId) };
    case 'config_option_update':
      return { kind: 'settings', settings: readSettings(update) };
    case 'session_info_update':
      return { kind: 'title', title: update.title === undefined ? undefined : asString(update.title) };
    case 'usage_update': {
      const { used, size, cost } = update;
      return { kind: 'usage', used: asNumber(used), size: asNumber(size), cost: readCost(cost) };
    }
    case 'subagent_update':
      return { kind: 'subagent', announcement: readAnnouncement(update) };
    case 'state_update':
      return { kind: 'work' };
    case 'notice': {
      const { severity, title, description } = update;
      const texts = { title: asString(title), description: asString(description) };
      return { kind: 'notice', severity: asString(severity), ...texts };
    }
    case 'compaction_update':
      return { kind: 'compaction', status: asString(update.status), error: asString(update.error) };
    case 'compaction_summary_chunk':
      return { kind: 'compaction_summary' };
    default:
      return { kind: 'unknown' };
  }
}

function sessionMessage(update: Fields, is_chunk: boolean, blocks: readonly unknown[] | null): Update {
  return {
    kind: 'session_message',
    message_id: asString(update.messageId),
    from: asString(update.senderSessionId),
    to: asString(update.recipientSessionId),
    is_chunk,
    blocks,
  };
}

function terminal({ terminalId, command, output, exitStatus, data }: Fields): Update {
  const terminal_id = asString(terminalId);
  return { kind: 'terminal', terminal_id, command, output, exit_status: exitStatus, data };
}
