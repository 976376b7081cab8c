/** How many events of each type the log has, as far as the page has read it (pure). */
import { type EventRecord, type EventType, eventTypes } from '../../../../core/event.ts';
import type { LogRange } from './log-range.ts';

interface Count {
  readonly number: number;
  /** The log may have more, because the page holds only a part of it. */
  readonly has_more: boolean;
  /** The newest event at that time. */
  readonly last_seq: number;
}

/** Without a type: nothing of it was read. */
export type Counts = Readonly<Partial<Record<EventType | 'all', Count>>>;

/** Adds what `range` tells. It holds events of one type, or of all (undefined). */
export function withCounts(
  known: Counts,
  range: LogRange,
  type: EventType | undefined,
  last_seq: number,
): Counts {
  const countOf = (events: readonly EventRecord[]): Count => ({
    number: events.length,
    has_more: range.older || range.newer,
    // The record of the agent may be older than the events.
    last_seq: Math.max(last_seq, range.events.at(-1)?.seq ?? 0),
  });
  if (type !== undefined) return { ...known, [type]: countOf(range.events) };
  const ofType = (each: EventType) => range.events.filter((event) => event.type === each);
  return {
    all: countOf(range.events),
    ...Object.fromEntries(eventTypes.map((each) => [each, countOf(ofType(each))])),
  };
}

/** Such as `12`, or `200+` if there may be more. `last_seq`: the newest event of the log, unless the count is live. */
export function formatCount(count: Count | undefined, last_seq?: number): string {
  if (count === undefined) return '';
  const { number, has_more } = count;
  const is_lower_bound = has_more || (last_seq !== undefined && last_seq > count.last_seq);
  if (is_lower_bound && number === 0) return '';
  return `${number.toLocaleString('en')}${is_lower_bound ? '+' : ''}`;
}
