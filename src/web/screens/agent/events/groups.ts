/** Consecutive pieces of one message as one row (pure): an agent sends an event for every few words. */
import { asRecord } from '../../../../acp/json.ts';
import type { EventRecord } from '../../../../core/event.ts';

/** At least one event; several only if they are pieces of one message. */
export interface EventGroup {
  readonly first: EventRecord;
  readonly events: readonly EventRecord[];
}

export function groupEvents(events: readonly EventRecord[]): EventGroup[] {
  const groups: { first: EventRecord; events: EventRecord[]; message: string | null }[] = [];
  for (const event of events) {
    const message = messageOf(event);
    const last = groups.at(-1);
    if (last && message !== null && last.message === message) last.events.push(event);
    else groups.push({ first: event, events: [event], message });
  }
  return groups;
}

/** Each event by itself. */
export function singleEvents(events: readonly EventRecord[]): EventGroup[] {
  return events.map((event) => ({ first: event, events: [event] }));
}

export function groupWith(groups: readonly EventGroup[], seq: number): number {
  return groups.findIndex(({ events }) => events.some((event) => event.seq === seq));
}

/** The first event, with the text of all. */
export function joined({ first, events }: EventGroup): EventRecord {
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
  if (type !== 'acp_event') return {};
  return asRecord(asRecord(asRecord(payload).params).update);
}
