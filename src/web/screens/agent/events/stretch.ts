/** The part of a log that the page holds: without gaps, bounded, and extensible at both ends (pure). */
import type { EventRecord } from '../../../../core/event.ts';

/** The most events held at once; others are read again when the user scrolls there. */
export const EVENTS_MAX = 5_000;

export interface Stretch {
  readonly events: readonly EventRecord[];
  /** There are events before the first. */
  readonly older: boolean;
  /** There are unread events after the last, so live events cannot be appended. */
  readonly newer: boolean;
}

export const nothing: Stretch = { events: [], older: false, newer: false };

export function withOlder(stretch: Stretch, page: readonly EventRecord[], older: boolean): Stretch {
  const first = stretch.events[0]?.seq ?? Number.POSITIVE_INFINITY;
  const all = [...page.filter(({ seq }) => seq < first), ...stretch.events];
  const events = all.slice(0, EVENTS_MAX);
  return { events, older, newer: stretch.newer || events.length < all.length };
}

export function withNewer(stretch: Stretch, page: readonly EventRecord[], newer: boolean): Stretch {
  const last = stretch.events.at(-1)?.seq ?? 0;
  const all = [...stretch.events, ...page.filter(({ seq }) => seq > last)];
  const events = all.slice(-EVENTS_MAX);
  return { events, newer, older: stretch.older || events.length < all.length };
}
