/**
 * Reads and writes the lines of an ACP agent as JSON-RPC messages. Checks only the envelope of a message. A line
 * that is not a message is ordinary output.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { limits as sharedLimits } from '../base/limits.ts';
import { exceedsDepth, exceedsValueCount } from './depth.ts';
import { isRecord } from './json.ts';
import { limits } from './limits.ts';

export type RequestId = string | number | null;

export type Message =
  | { kind: 'request'; id: RequestId; method: string; params: unknown }
  | { kind: 'notification'; method: string; params: unknown }
  | { kind: 'response'; id: RequestId; result?: unknown; error?: RpcError };

export interface RpcError {
  code: number;
  message: string;
}

export const rpcErrors = {
  methodNotFound: { code: -32601, message: 'method not found' },
  invalidParams: { code: -32602, message: 'invalid params' },
  tooManyRequests: { code: -32603, message: 'too many open requests' },
  unreadable: { code: -32603, message: 'the message could not be read' },
  requestCancelled: { code: -32800, message: 'request cancelled' },
} as const satisfies Record<string, RpcError>;

/** The error code that an agent returns when it requires a sign-in. */
export const AUTH_REQUIRED = -32000;

/** Null if the line is not a JSON-RPC 2.0 message, or if its id, method, depth or number of values exceeds the limits. */
export function readMessage(line: string): Message | null {
  if (!line.startsWith('{') || exceedsDepth(line, limits.acp_levels_max)) return null;
  if (exceedsValueCount(line, limits.acp_values_max)) return null;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isRecord(value) || value.jsonrpc !== '2.0') return null;
  const { id, method, params, result, error } = value;
  if (method !== undefined) {
    if (!isShortText(method)) return null;
    if (id === undefined) return { kind: 'notification', method, params };
    return isId(id) ? { kind: 'request', id, method, params } : null;
  }
  if (!isId(id)) return null;
  // Some libraries omit null, so a response with neither field has a null result.
  const failed = error !== undefined && error !== null;
  return failed ? { kind: 'response', id, error: readError(error) } : { kind: 'response', id, result };
}

/** The message as one line, with its newline. */
export function writeMessage(message: Message): string {
  return `${JSON.stringify(toWire(message))}\n`;
}

function toWire(message: Message): AnyMessage {
  const jsonrpc = '2.0';
  switch (message.kind) {
    case 'request':
      return { jsonrpc, id: message.id, method: message.method, params: message.params };
    case 'notification':
      return { jsonrpc, method: message.method, params: message.params };
    case 'response':
      return message.error
        ? { jsonrpc, id: message.id, error: message.error }
        : { jsonrpc, id: message.id, result: message.result };
  }
}

/** A string field of a record, truncated to the maximum length; null if it is missing. */
export function readText(value: unknown, key: string): string | null {
  const text = isRecord(value) ? value[key] : undefined;
  return typeof text === 'string' ? truncate(text) : null;
}

/** Truncates text from the agent to the length that may be stored. */
export function truncate(text: string): string {
  return text.slice(0, sharedLimits.acp_text_chars_max);
}

/** Ids are stored until the request is answered, and are shown in events, so their length is limited. */
export function isId(value: unknown): value is RequestId {
  return value === null || isShortText(value) || Number.isFinite(value);
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= sharedLimits.acp_text_chars_max;
}

/** A JSON-RPC error as sent by the agent. */
export function readError(error: unknown): RpcError {
  const fields = isRecord(error) ? error : { message: error };
  return {
    code: typeof fields.code === 'number' ? fields.code : 0,
    message: readText(fields, 'message') ?? 'an error without a message',
  };
}
