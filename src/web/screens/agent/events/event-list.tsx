/** Events, of which only those that are seen exist. Pages are read when their end comes near. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import { wordsOf } from '../../../api/client.ts';
import { EventRow } from './event-row.tsx';
import type { Events } from './use-events.ts';

const ROW_PX = 29;
const NEAR_PX = 12;
/** So many events before an end of what is known, more are read. */
const AHEAD = 20;

export interface EventListHandle {
  show(seq: number): void;
  toEnd(): void;
}

export interface EventListProps {
  events: Events;
  open: ReadonlySet<number>;
  marked: number | null;
  /** It stays at the end. */
  follows: boolean;
  onFollow: (follows: boolean) => void;
  onToggle: (seq: number) => void;
  onMark: (seq: number) => void;
  ref: Ref<EventListHandle>;
}

export function EventList(props: EventListProps) {
  const { events, open, marked, follows, onFollow, onToggle, onMark, ref } = props;
  const { stretch, loading, error, readOlder, readNewer } = events;
  const { events: rows } = stretch;
  const scroller = useRef<HTMLDivElement>(null);
  const held = useRef({ anchor: 0, delta: 0, top: 0 });
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
    getItemKey: useCallback((index: number) => rows[index]!.seq, [rows]),
  });

  useImperativeHandle(ref, () => ({
    show(seq) {
      const index = rows.findIndex((event) => event.seq === seq);
      if (index === -1) return;
      onFollow(false);
      virtualizer.scrollToIndex(index, { align: 'start' });
    },
    toEnd() {
      scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
    },
  }));

  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const { scrollTop, scrollHeight, clientHeight } = element;
    const is_at_end = scrollHeight - scrollTop - clientHeight <= NEAR_PX && !stretch.newer;
    if (is_at_end !== follows && (is_at_end || scrollTop < held.current.top)) onFollow(is_at_end);
    const item = virtualizer.getVirtualItemForOffset(scrollTop);
    if (item)
      held.current = { anchor: rows[item.index]?.seq ?? 0, delta: scrollTop - item.start, top: scrollTop };
  };

  const total = virtualizer.getTotalSize();
  const first = rows[0]?.seq;
  // What is read stays where it is when older events come in above it, or go.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only where the beginning changes
  useLayoutEffect(() => {
    const { anchor, delta } = held.current;
    const index = follows ? -1 : rows.findIndex((event) => event.seq === anchor);
    const item = virtualizer.measurementsCache[index];
    if (item && scroller.current) scroller.current.scrollTop = item.start + delta;
  }, [first]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever is added, or measured, moves the end
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && follows && !stretch.newer) element.scrollTop = element.scrollHeight;
  }, [total, follows, stretch.newer, rows]);

  const items = virtualizer.getVirtualItems();
  const [top, bottom] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again at each step towards an end
  useEffect(() => {
    if (loading || error) return;
    if (top < AHEAD && stretch.older) readOlder();
    else if (bottom >= rows.length - AHEAD && stretch.newer) readNewer();
  }, [top, bottom, loading, stretch.older, stretch.newer]);

  return (
    <section
      ref={scroller}
      aria-label="Events"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      onScroll={onScroll}
      className="scroll-y min-h-0 flex-1 outline-offset-[-2px] [overflow-anchor:none]"
    >
      {Boolean(error) && (
        <p role="alert" className="px-3 py-1 text-failed">
          {wordsOf(error)}{' '}
          <button type="button" className="tap underline" onClick={stretch.newer ? readNewer : readOlder}>
            Try again
          </button>
        </p>
      )}
      <div className="relative" style={{ height: total }}>
        <ol
          className="absolute top-0 left-0 w-full"
          style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}
        >
          {items.map(({ index, key }) => {
            const event = rows[index]!;
            return (
              <EventRow
                key={key}
                ref={virtualizer.measureElement}
                index={index}
                event={event}
                is_open={open.has(event.seq)}
                is_marked={marked === event.seq}
                onToggle={onToggle}
                onMark={onMark}
              />
            );
          })}
        </ol>
      </div>
    </section>
  );
}
