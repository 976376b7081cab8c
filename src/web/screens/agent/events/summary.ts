/** A one-line summary of an event (pure). The text comes from an agent, so control characters are removed or shown. */
import { asRecord, type Fields } from '../../../../acp/json.ts';
import {
  takeRecords as asRecords,
  formatRaw,
  toRaw,
  shortOrNull as wordOf,
} from '../../../../acp/transcript/bounded.ts';
import { rawUpdate } from '../../../../acp/updates.ts';
import type { EventRecord } from '../../../../core/event.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import { plainText } from '../../../transcript/ansi.ts';

const TEXT_MAX = 300;

export interface Summary {
  /** The kind within its type. */
  readonly what: string;
  /** The direction of a protocol message. */
  readonly direction: 'to_agent' | 'from_agent' | null;
  readonly text: string;
}

/** `request_method`: for a response, the method of its request if it is known. */
export function summarizeEvent(event: EventRecord, request_method: string | null = null): Summary {
  switch (event.type) {
    case 'output':
      return summarize(wordOf(event.stream) ?? '', wordOf(event.data) ?? 'binary data');
    case 'status':
      return summarize(wordOf(event.status) ?? '', statusText(event));
    case 'acp_event':
      return {
        ...acpSummary(event, request_method),
        direction: event.direction === 'to_agent' ? 'to_agent' : 'from_agent',
      };
    case 'error':
      return summarize(wordOf(event.code) ?? '', wordOf(event.error) ?? '');
    default:
      return summarize('', '');
  }
}

/** The complete event as JSON, with invisible and reordering characters escaped. */
export function formatJson(event: EventRecord): string {
  return formatRaw({ value: event, truncated: false }).replace(
    /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function summarize(what: string, text: string): Summary {
  return { what: line(what), direction: null, text: line(text) };
}

function line(text: string): string {
  const head = text
    .slice(0, TEXT_MAX)
    .trim()
    .replace(/\s*\n\s*/g, ' ⏎ ');
  return plainText(head) + (text.length > TEXT_MAX ? '…' : '');
}

function statusText({ previous_status, reason, exit_code, exit_signal }: EventRecord): string {
  const parts = [
    wordOf(previous_status) && `was ${wordOf(previous_status)}`,
    typeof exit_code === 'number' && `exit ${exit_code}`,
    wordOf(exit_signal) && `signal ${wordOf(exit_signal)}`,
    wordOf(reason),
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Adds the name of a sub-agent. */
function acpSummary(event: EventRecord, request_method: string | null): Omit<Summary, 'direction'> {
  const summary = message(event, request_method);
  const id = wordOf(event.subagent);
  if (id === null) return summary;
  const by = `${event.unknown_session === true ? 'unknown session' : 'sub-agent'} ${id}`;
  return { ...summary, text: `${line(escapeHidden(by))} · ${summary.text}` };
}

function message(event: EventRecord, request_method: string | null): Omit<Summary, 'direction'> {
  const payload = asRecord(event.payload);
  const method = wordOf(payload.method) ?? wordOf(event.method);
  if (method === null) {
    const request = wordOf(request_method) ?? idText(event.response_to);
    return summarize(`response to ${request}`, responseText(payload));
  }
  if (method === 'session/update') {
    const update = rawUpdate(payload);
    return summarize(wordOf(update.sessionUpdate) ?? method, updateText(update));
  }
  return summarize(method, paramsText(asRecord(payload.params)));
}

function idText(id: unknown): string {
  return typeof id === 'number' ? String(id) : (wordOf(id) ?? '?');
}

function responseText({ result, error }: Fields): string {
  const { message: text } = asRecord(error);
  return wordOf(text) ?? wordOf(asRecord(result).stopReason) ?? shortJson(result);
}

function updateText(update: Fields): string {
  const { content, title, status, state, stopReason, entries } = update;
  if (Array.isArray(entries))
    return asRecords(entries)
      .map((entry) => wordOf(entry.content))
      .join(' · ');
  const parts = Array.isArray(content) ? asRecords(content) : [asRecord(content)];
  const texts = [title, status, state, stopReason, ...parts.map(({ text }) => text)].map(wordOf);
  const text = texts.filter((text) => text !== null).join(' · ');
  return text === '' ? shortJson(update) : text;
}

/** Without the session, which is the same in most events. */
function paramsText({ prompt, toolCall, title, sessionId: _, ...rest }: Fields): string {
  if (Array.isArray(prompt))
    return asRecords(prompt)
      .map((part) => wordOf(part.text) ?? wordOf(part.type))
      .join(' ');
  const text = wordOf(asRecord(toolCall).title) ?? wordOf(title);
  return text ?? (Object.keys(rest).length > 0 ? shortJson(rest) : '');
}

function shortJson(value: unknown): string {
  return value === undefined ? '' : formatRaw(toRaw(value, TEXT_MAX)).replace(/\s+/g, ' ');
}
