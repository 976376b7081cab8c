/** The searchable text of a frame. Never throws, whatever the shape of the frame. */
import { blockText, contentTexts } from './blocks.ts';
import { asRecord, asRecords, asString, type Fields } from './json.ts';
import type { AgentMethod, ClientMethod } from './methods.ts';
import { readUpdate } from './updates.ts';
import { toV1Permission } from './v2/reading.ts';

/** Returns the searchable strings of a frame. Callers leave out replayed frames. */
export function searchableTexts(payload: unknown): string[] {
  const { method, params } = asRecord(payload);
  const { prompt, update } = asRecord(params);
  switch (method as AgentMethod | ClientMethod) {
    case 'session/prompt':
      return asRecords(prompt).flatMap((block) => blockText(block) ?? []);
    case 'session/update':
      return updateTexts(asRecord(update));
    case 'session/request_permission':
      return permissionTexts(asRecord(toV1Permission(asRecord(params)).toolCall));
    default:
      return [];
  }
}

function updateTexts(raw: Fields): string[] {
  const update = readUpdate(raw);
  switch (update.kind) {
    case 'tool_call':
      return update.operation === 'appends' ? [] : callTexts(raw);
    case 'chunk':
      return [blockText(update.block) ?? ''];
    case 'message':
      return asRecords(raw.content).flatMap((block) => blockText(block) ?? []);
    case 'session_message':
      return update.is_chunk
        ? [blockText(raw.content) ?? '']
        : asRecords(update.blocks).flatMap((block) => blockText(block) ?? []);
    default:
      return [];
  }
}

/** In ACP version 2, a permission request has more text than a title. */
function permissionTexts(call: Fields): string[] {
  return [...callTexts(call), ...contentTexts(call.content)];
}

function callTexts({ title, rawInput }: Fields): string[] {
  return [asString(title) ?? '', ...collectStrings(rawInput)];
}

/** All strings in a value, in order. It is not recursive, because an agent can nest a frame as deep as it is long. */
export function collectStrings(value: unknown): string[] {
  const found: string[] = [];
  const stack = [value];
  while (stack.length > 0) {
    const next = stack.pop();
    if (typeof next === 'string') found.push(next);
    else if (typeof next === 'object' && next !== null) {
      for (const value of Object.values(next).reverse()) stack.push(value);
    }
  }
  return found;
}
