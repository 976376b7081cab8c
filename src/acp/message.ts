/**
 * One line of an agent that speaks ACP, as a JSON-RPC message: read without judging more than its form, and written.
 * What is no message is output like any other line.
 */
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { limits } from '../base/limits.ts';
import { isDeeper } from './depth.ts';

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
  requestCancelled: { code: -32800, message: 'request cancelled' },
} as const satisfies Record<string, RpcError>;

/** What an agent answers when somebody has to sign in first. */
export const AUTH_REQUIRED = -32000;

/** Null for what is no JSON-RPC 2.0 message, or one whose id, method or depth nobody would use. */
export function readMessage(line: string): Message | null {
  if (!line.startsWith('{') || isDeeper(line, limits.acp_levels_max)) return null;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isRecord(value) || value.jsonrpc !== '2.0') return null;
  const { id, method, params, result, error } = value;
  if (method !== undefined) {
    if (!isWord(method)) return null;
    if (id === undefined) return { kind: 'notification', method, params };
    return isId(id) ? { kind: 'request', id, method, params } : null;
  }
  if (!isId(id)) return null;
  // Some libraries leave out what is null: an answer with neither is one without a result.
  const failed = error !== undefined && error !== null;
  return failed ? { kind: 'response', id, error: readError(error) } : { kind: 'response', id, result };
}

/** One line, with its newline. */
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

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function recordsOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** A text of a record's, as much of it as is kept; null where there is none. */
export function textOf(value: unknown, key: string): string | null {
  const text = isRecord(value) ? value[key] : undefined;
  return typeof text === 'string' ? text.slice(0, limits.acp_text_chars_max) : null;
}

/** They are kept until they are answered, and told with the event: no longer than a word. */
export function isId(value: unknown): value is RequestId {
  return value === null || isWord(value) || Number.isFinite(value);
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= limits.acp_text_chars_max;
}

function readError(error: unknown): RpcError {
  const said = isRecord(error) ? error : { message: error };
  return {
    code: typeof said.code === 'number' ? said.code : 0,
    message: textOf(said, 'message') ?? 'an error without words',
  };
}
