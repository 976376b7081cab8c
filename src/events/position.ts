/**
 * Parses where a client wants to resume: after the last event it has, some events before the newest, or at the start.
 */
import { problems } from '../core/problem.ts';

export type Position = { after: number } | { tail: number } | 'start';

/**
 * `Last-Event-ID` takes precedence over `after`, and `after` over `tail`. Throws `invalid last event id` unless it is a
 * number.
 */
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
