/** Where a client wants to go on: its last event, some events before the newest, or the start of what is kept. */
import { problems } from '../domain/problem.ts';

export type Position = { after: number } | { tail: number } | 'start';

/** `Last-Event-ID` wins over `after`, `after` over `tail`. Throws `invalid last event id` for what is no number. */
export function parsePosition(given: {
  last_event_id?: string | undefined;
  after?: string | number | undefined;
  tail?: number | undefined;
}): Position {
  const id = given.last_event_id ?? given.after;
  if (id !== undefined) {
    const text = String(id).trim();
    if (!/^\d+$/.test(text)) throw problems.invalidLastEventId();
    return { after: Number(text) };
  }
  return given.tail === undefined ? 'start' : { tail: given.tail };
}
