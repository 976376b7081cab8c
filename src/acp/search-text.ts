/** The searchable text of a frame. Never throws, whatever the form of the frame. */
import { blockText, contentTexts } from './blocks.ts';
import { type Fields, fieldsOf, recordsOf, stringOf } from './json.ts';
import type { AgentMethod, ClientMethod } from './methods.ts';
import { readUpdate } from './updates.ts';
import { plainPermission } from './v2/reading.ts';

/** The texts to search in. Callers leave out replayed frames. */
export function searchTexts(payload: unknown): string[] {
  const { method, params } = fieldsOf(payload);
  const { prompt, update } = fieldsOf(params);
  switch (method as AgentMethod | ClientMethod) {
    case 'session/prompt':
      return recordsOf(prompt).flatMap((block) => blockText(block) ?? []);
    case 'session/update':
      return updateTexts(fieldsOf(update));
    case 'session/request_permission':
      return permissionTexts(fieldsOf(plainPermission(fieldsOf(params)).toolCall));
    default:
      return [];
  }
}

function updateTexts(raw: Fields): string[] {
  const update = readUpdate(raw);
  switch (update.kind) {
    case 'tool_call':
      return update.how === 'appends' ? [] : callTexts(raw);
    case 'chunk':
      return [blockText(update.block) ?? ''];
    case 'message':
      return recordsOf(raw.content).flatMap((block) => blockText(block) ?? []);
    case 'session_message':
      return update.is_chunk
        ? [blockText(raw.content) ?? '']
        : recordsOf(update.blocks).flatMap((block) => blockText(block) ?? []);
    default:
      return [];
  }
}

/** In ACP version 2, a permission request has more text than a title. */
function permissionTexts(call: Fields): string[] {
  return [...callTexts(call), ...contentTexts(call.content)];
}

function callTexts({ title, rawInput }: Fields): string[] {
  return [stringOf(title) ?? '', ...stringsIn(rawInput)];
}

/** All strings in a value, in order. It is not recursive, because an agent can nest a frame as deep as it is long. */
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
