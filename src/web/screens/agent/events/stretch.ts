/** A stretch of a log that a page holds: without gaps, bounded, and open to one side or both (pure). */
import type { EventRecord } from '../../../../core/event.ts';

/** So many events at once; the rest is read again where somebody goes there. */
export const EVENTS_MAX = 5_000;

export interface Stretch {
  readonly events: readonly EventRecord[];
  /** There are older ones than the first. */
  readonly older: boolean;
  /** There are newer ones than the last that are not known: it does not go on by itself. */
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
