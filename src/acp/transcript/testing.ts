/** Creates events like those of an agent that speaks ACP, for tests. */
import type { EventRecord } from '../../core/event.ts';
import type { Fields } from '../json.ts';
import type { Item } from './items.ts';
import { Transcript, type View } from './transcript.ts';

/** Numbers the events in order, one second apart. */
export function numbered(events: readonly Fields[], first = 1): EventRecord[] {
  return events.map(
    (event, at) =>
      ({ agent_id: 'agt_1', session_id: 'ses_1', seq: first + at, ts: first + at, ...event }) as EventRecord,
  );
}

export function viewOf(...events: Fields[]): View {
  const transcript = new Transcript();
  transcript.append(numbered(events));
  return transcript.view;
}

/** The items of this kind. */
export function itemsOf<K extends Item['kind']>(view: View, kind: K): (Item & { kind: K })[] {
  return view.items.filter((item) => item.kind === kind) as (Item & { kind: K })[];
}

export const toAgent = (payload: unknown, more: Fields = {}): Fields => ({
  type: 'acp_event',
  direction: 'to_agent',
  payload,
  ...more,
});
export const fromAgent = (payload: unknown, more: Fields = {}): Fields => ({
  type: 'acp_event',
  direction: 'from_agent',
  payload,
  ...more,
});

export const sendRequest = (method: string, params: Fields = {}, id: unknown = 'prm_1') =>
  toAgent({ id, method, params });
export const response = (answer: Fields, id: unknown = 'prm_1') => fromAgent({ id, ...answer });
export const promptRequest = (text: string, id: unknown = 'prm_1') =>
  sendRequest('session/prompt', { prompt: [{ type: 'text', text }] }, id);
export const cancelNotification = () => toAgent({ method: 'session/cancel', params: {} });
export const promptResponse = (stopReason: string, id: unknown = 'prm_1') =>
  response({ result: { stopReason } }, id);

export const update = (fields: Fields, more: Fields = {}) =>
  fromAgent({ method: 'session/update', params: { update: fields } }, more);
export const agentMessage = (text: string, more: Fields = {}, event: Fields = {}) =>
  update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, ...more }, event);
export const agentThought = (text: string, more: Fields = {}) =>
  update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text }, ...more });
export const toolCall = (toolCallId: string, fields: Fields = {}) =>
  update({ sessionUpdate: 'tool_call', toolCallId, title: toolCallId, status: 'pending', ...fields });
export const toolCallUpdate = (toolCallId: string, fields: Fields) =>
  update({ sessionUpdate: 'tool_call_update', toolCallId, ...fields });

export const options = [
  { optionId: 'y', name: 'Yes, do it', kind: 'allow_once' },
  { optionId: 'n', name: 'No', kind: 'made_up_kind' },
];
export const permissionRequest = (
  review_id: string,
  toolCall: Fields = { toolCallId: 'c1' },
  id: unknown = 7,
) => fromAgent({ id, method: 'session/request_permission', params: { toolCall, options } }, { review_id });
export const permissionResponse = (review_id: string, outcome: Fields, answered_by: string | null = 'ana') =>
  toAgent({ id: 7, result: { outcome } }, { review_id, answered_by, response_to: 7 });

export const statusEvent = (status: string, more: Fields = {}): Fields => ({
  type: 'status',
  status,
  previous_status: 'running',
  ...more,
});
export const errorEvent = (code: string, more: Fields = {}): Fields => ({
  type: 'error',
  code,
  error: `${code} happened`,
  ...more,
});
export const outputEvent = (data: string, more: Fields = {}): Fields => ({
  type: 'output',
  stream: 'stdout',
  data,
  ...more,
});
