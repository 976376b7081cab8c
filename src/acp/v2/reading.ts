/**
 * Translates an agent's messages from ACP v2 into the form of v1 (pure), so that readers handle both versions alike. It looks
 * only at the form of a message, so a reader that starts in the middle of a log need not know the version. Anything
 * without an equivalent in v1 is unchanged. Only types are imported from the SDK, to keep the CLI's start fast.
 */
import type { SessionUpdate } from '@agentclientprotocol/sdk/experimental/v2';
import { asRecord, asRecords, type Fields, isRecord } from '../json.ts';

export type UpdateKind = Extract<SessionUpdate['sessionUpdate'], string>;

/** The `update` of a `session/update`. */
export function toV1Update(update: Fields): Fields {
  switch (update.sessionUpdate) {
    case 'plan_update': {
      const plan = asRecord(update.plan);
      return plan.type === 'items' ? { sessionUpdate: 'plan', entries: plan.entries } : update;
    }
    case 'config_option_update':
      return withV1Options(update);
    case 'tool_call_update':
      return toV1Call(update);
    default:
      return update;
  }
}

/** The result of opening a session or setting an option, with its options in the form of v1. */
export function withV1Options(result: Fields): Fields {
  const { configOptions } = result;
  return Array.isArray(configOptions) ? { ...result, configOptions: configOptions.map(plainOption) } : result;
}

function plainOption(option: unknown): unknown {
  if (!isRecord(option) || option.id !== undefined || option.configId === undefined) return option;
  const { configId, ...rest } = option;
  return { id: configId, ...rest };
}

/** `null` resets a field to its initial value. */
function toV1Call(update: Fields): Fields {
  const { kind, status, content, locations } = update;
  return {
    ...update,
    ...(kind === null && { kind: 'other' }),
    ...(status === null && { status: 'pending' }),
    ...(content === null && { content: [] }),
    ...(locations === null && { locations: [] }),
  };
}

/**
 * The params of a `session/request_permission`. The request's title becomes the call's, because people see that one. Other
 * texts of the request precede the call's content.
 */
export function toV1Permission(params: Fields): Fields {
  const { title, description, subject } = params;
  if (params.toolCall !== undefined || typeof title !== 'string') return params;
  const call = subjectCall(asRecord(subject));
  const texts = [description, call.title === title ? null : call.title].filter(
    (text) => typeof text === 'string',
  );
  const shown = texts.map((text) => ({ type: 'content', content: { type: 'text', text } }));
  const content = [...shown, ...(Array.isArray(call.content) ? call.content : [])];
  const { subject: _subject, description: _description, title: _title, ...rest } = params;
  return { ...rest, toolCall: { ...call, title, ...(content.length > 0 && { content }) } };
}

/** The tool call for which a `session/request_permission` asks, as an update of that call; null if it names none. */
export function findCall({ toolCall, subject }: Fields): Fields | null {
  if (toolCall !== undefined || !isRecord(subject) || subject.type !== 'tool_call') return null;
  return isRecord(subject.toolCall) ? toV1Call(subject.toolCall) : null;
}

function subjectCall(subject: Fields): Fields {
  const { type, toolCall, command, cwd, toolCallId } = subject;
  if (type === 'tool_call') return isRecord(toolCall) ? toV1Call(toolCall) : {};
  if (type === 'command') {
    const id = typeof toolCallId === 'string' ? { toolCallId } : {};
    return { ...id, kind: 'execute', rawInput: { command, cwd } };
  }
  // People cannot decide about something that is not shown.
  return type === undefined ? {} : { rawInput: subject };
}

/** The blocks of a complete message; null for an update that does not change them. */
export function messageBlocks({ content }: Fields): Fields[] | null {
  if (content === null) return [];
  return Array.isArray(content) ? asRecords(content) : null;
}
