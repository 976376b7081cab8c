/**
 * The rows of a list of events (pure). Consecutive pieces of one message are one row, because an agent sends an event for every
 * few words.
 */
import { asRecord } from '../../../../acp/json.ts';
import { rawUpdate } from '../../../../acp/updates.ts';
import type { EventRecord } from '../../../../core/event.ts';

/** At least one event; several only if they are pieces of one message. */
export interface EventGroup {
  readonly first: EventRecord;
  readonly events: readonly EventRecord[];
  /** The method of the request that a response answers; null if the request is not among the events. */
  readonly request_method: string | null;
}

export function groupEvents(events: readonly EventRecord[]): EventGroup[] {
  const groups: (EventGroup & { events: EventRecord[]; message: string | null })[] = [];
  const requestMethod = trackRequests();
  for (const event of events) {
    const message = messageOf(event);
    const request_method = requestMethod(event);
    const last = groups.at(-1);
    if (last && message !== null && last.message === message) last.events.push(event);
    else groups.push({ first: event, events: [event], request_method, message });
  }
  return groups;
}

/** Each event by itself. */
export function singleEvents(events: readonly EventRecord[]): EventGroup[] {
  const requestMethod = trackRequests();
  return events.map((event) => ({ first: event, events: [event], request_method: requestMethod(event) }));
}

/** Returns a function to call for each event in order. For a response, it returns the method of its request. */
function trackRequests(): (event: EventRecord) => string | null {
  const methods = new Map<string, string>();
  return ({ type, session_id, direction, payload, response_to }) => {
    if (type !== 'acp_event') return null;
    const { id, method } = asRecord(payload);
    const keyOf = (from: unknown, request_id: unknown) => JSON.stringify([session_id, from, request_id]);
    if (typeof method === 'string' && id !== undefined) methods.set(keyOf(direction, id), method);
    if (response_to === undefined) return null;
    // Each side numbers its own requests.
    return methods.get(keyOf(direction === 'to_agent' ? 'from_agent' : 'to_agent', response_to)) ?? null;
  };
}

export function groupWith(groups: readonly EventGroup[], seq: number): number {
  return groups.findIndex(({ events }) => events.some((event) => event.seq === seq));
}

/** The first event, with the text of all. */
export function joined({ first, events }: Pick<EventGroup, 'first' | 'events'>): EventRecord {
  if (events.length === 1) return first;
  const text = events.map((event) => asRecord(updateOf(event).content).text).join('');
  const { params, ...rest } = asRecord(first.payload);
  const update = { ...updateOf(first), content: { type: 'text', text } };
  return { ...first, payload: { ...rest, params: { ...asRecord(params), update } } };
}

/** What the pieces of one message have in common; null for every other event. */
function messageOf(event: EventRecord): string | null {
  const { sessionUpdate, messageId, content } = updateOf(event);
  const is_piece = sessionUpdate === 'agent_message_chunk' || sessionUpdate === 'agent_thought_chunk';
  if (!is_piece || event.direction !== 'from_agent') return null;
  if (typeof asRecord(content).text !== 'string') return null;
  return JSON.stringify([sessionUpdate, messageId, event.session_id, event.subagent, event.replay]);
}

function updateOf({ type, payload }: EventRecord): Record<string, unknown> {
  return type === 'acp_event' ? rawUpdate(payload) : {};
}
