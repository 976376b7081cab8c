/**
 * What people read of frames, for whoever shows or finds it: whatever the form of a frame, reading it throws nothing. Of the SDK it
 * takes types alone, so that the command line begins without loading it.
 */
import type { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { isRecord, recordsOf } from './message.ts';

export type Fields = Record<string, unknown>;
export type AgentMethod = (typeof AGENT_METHODS)[keyof typeof AGENT_METHODS];
export type ClientMethod =
  | (typeof CLIENT_METHODS)[keyof typeof CLIENT_METHODS]
  | (typeof PROTOCOL_METHODS)[keyof typeof PROTOCOL_METHODS];

/** A record, empty for what is none. */
export function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

export function stringOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Any value in a word or more. Not by `String`: an agent's object may have a `toString` that is no function. */
export function wordOf(value: unknown): string {
  return stringOf(value) ?? JSON.stringify(value) ?? '';
}

/** The text of a content block; null for one that holds none. */
export function blockText(block: unknown): string | null {
  const { type, text, resource } = fieldsOf(block);
  if (type === 'text') return stringOf(text);
  return type === 'resource' ? stringOf(fieldsOf(resource).text) : null;
}

/** What was said or done in a frame, in words to be found again; replayed ones are not asked for. */
export function wordsOf(payload: unknown): string[] {
  const { method, params } = fieldsOf(payload);
  const { prompt, update, toolCall } = fieldsOf(params);
  switch (method as AgentMethod | ClientMethod) {
    case 'session/prompt':
      return recordsOf(prompt).flatMap((block) => blockText(block) ?? []);
    case 'session/update':
      return wordsOfUpdate(fieldsOf(update));
    case 'session/request_permission':
      return wordsOfCall(fieldsOf(toolCall));
    default:
      return [];
  }
}

function wordsOfUpdate(update: Fields): string[] {
  const { sessionUpdate, content } = update;
  if (sessionUpdate === 'tool_call' || sessionUpdate === 'tool_call_update') return wordsOfCall(update);
  const said = sessionUpdate === 'agent_message_chunk' || sessionUpdate === 'agent_thought_chunk';
  return said ? [blockText(content) ?? ''] : [];
}

function wordsOfCall({ title, rawInput }: Fields): string[] {
  return [stringOf(title) ?? '', ...stringsIn(rawInput)];
}

/** In their order. Not by recursion: an agent may nest as deep as its frame is long. */
export function stringsIn(value: unknown): string[] {
  const found: string[] = [];
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') found.push(next);
    else if (typeof next === 'object' && next !== null) {
      for (const value of Object.values(next).reverse()) left.push(value);
    }
  }
  return found;
}
