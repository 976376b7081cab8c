/** The part of a log that the page holds: without gaps, bounded, and extensible at both ends (pure). */
import type { EventRecord } from '../../../../core/event.ts';

/** The most events held at once; others are read again when the user scrolls there. */
export const EVENTS_MAX = 5_000;

export interface LogRange {
  readonly events: readonly EventRecord[];
  /** There are events before the first. */
  readonly older: boolean;
  /** There are unread events after the last, so live events cannot be appended. */
  readonly newer: boolean;
}

export const nothing: LogRange = { events: [], older: false, newer: false };

export function withOlder(range: LogRange, page: readonly EventRecord[], older: boolean): LogRange {
  const first = range.events[0]?.seq ?? Number.POSITIVE_INFINITY;
  const all = [...page.filter(({ seq }) => seq < first), ...range.events];
  const events = all.slice(0, EVENTS_MAX);
  return { events, older, newer: range.newer || events.length < all.length };
}

export function withNewer(range: LogRange, page: readonly EventRecord[], newer: boolean): LogRange {
  const last = range.events.at(-1)?.seq ?? 0;
  const all = [...range.events, ...page.filter(({ seq }) => seq > last)];
  const events = all.slice(-EVENTS_MAX);
  return { events, newer, older: range.older || events.length < all.length };
}
