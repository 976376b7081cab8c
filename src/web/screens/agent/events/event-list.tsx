/** The virtual list of events. More events are read when the user scrolls near an end. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import {
  type Ref,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
} from 'react';
import { errorMessage } from '../../../api/client.ts';
import { Contained } from '../../../ui/contained.tsx';
import { EventRow } from './event-row.tsx';
import { type EventGroup, groupWith } from './groups.ts';
import type { Events } from './use-events.ts';

const ROW_PX = 28;
const NEAR_PX = 12;
/** How many events before an end the next page is read. */
const AHEAD = 20;

export interface EventListHandle {
  show(seq: number): void;
  toEnd(): void;
}

export interface EventListProps {
  events: Events;
  /** The rows: the events of `events`, some of them together. */
  rows: readonly EventGroup[];
  open: ReadonlySet<number>;
  marked: number | null;
  /** Whether the list stays at its end. */
  follows: boolean;
  onFollow: (follows: boolean) => void;
  onToggle: (seq: number) => void;
  onMark: (seq: number) => void;
  ref: Ref<EventListHandle>;
}

export function EventList(props: EventListProps) {
  const { events, rows, open, marked, onToggle, onMark } = props;
  const { errors, readOlder, readNewer } = events;
  const scroller = useRef<HTMLDivElement>(null);
  // A column that says the same in every row says nothing.
  const shows_type = useMemo(() => new Set(rows.map(({ first }) => first.type)).size > 1, [rows]);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 8,
    getItemKey: useCallback((index: number) => rows[index]!.first.seq, [rows]),
  });
  const onScroll = useScrollPosition(props, scroller, virtualizer);
  useReadingAhead(events, rows.length, virtualizer);
  const items = virtualizer.getVirtualItems();
  return (
    <section
      ref={scroller}
      aria-label="Events"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      onScroll={onScroll}
      className="scroll-y min-h-0 flex-1 outline-offset-[-2px] [overflow-anchor:none]"
    >
      {errors.older !== undefined && <ReadError error={errors.older} retry={readOlder} />}
      <div className="relative" style={{ height: virtualizer.getTotalSize() }}>
        <ol
          className="absolute top-0 left-0 w-full"
          style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}
        >
          {items.map(({ index, key }) => {
            const group = rows[index]!;
            return (
              <Contained key={key} retryOn={group}>
                <EventRow
                  ref={virtualizer.measureElement}
                  index={index}
                  group={group}
                  shows_type={shows_type}
                  is_open={group.events.some(({ seq }) => open.has(seq))}
                  is_marked={group.events.some(({ seq }) => seq === marked)}
                  onToggle={onToggle}
                  onMark={onMark}
                />
              </Contained>
            );
          })}
        </ol>
      </div>
      {errors.newer !== undefined && <ReadError error={errors.newer} retry={readNewer} />}
    </section>
  );
}

function ReadError({ error, retry }: { error: unknown; retry: () => void }) {
  return (
    <p role="alert" className="px-3 py-1 text-failed">
      {errorMessage(error)}{' '}
      <button type="button" className="tap underline" onClick={retry}>
        Try again
      </button>
    </p>
  );
}

type List = Virtualizer<HTMLDivElement, Element>;

/** Follows the end, or keeps the position when events are added or removed above. Returns the scroll handler. */
function useScrollPosition(
  { events: { range }, rows, follows, onFollow, ref }: EventListProps,
  scroller: RefObject<HTMLDivElement | null>,
  virtualizer: List,
): () => void {
  const { newer } = range;
  const held = useRef({ anchor: 0, delta: 0, top: 0 });
  useImperativeHandle(ref, () => ({
    show(seq) {
      const index = groupWith(rows, seq);
      if (index === -1) return;
      onFollow(false);
      virtualizer.scrollToIndex(index, { align: 'start' });
    },
    toEnd() {
      scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
    },
  }));
  const first = rows[0]?.first.seq;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the beginning changes
  useLayoutEffect(() => {
    const { anchor, delta } = held.current;
    const index = follows ? -1 : groupWith(rows, anchor);
    const item = virtualizer.measurementsCache[index];
    if (item && scroller.current) scroller.current.scrollTop = item.start + delta;
  }, [first]);
  const total = virtualizer.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: added or measured rows move the end
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && follows && !newer) element.scrollTop = element.scrollHeight;
  }, [total, follows, newer, rows]);
  return () => {
    const element = scroller.current;
    if (!element) return;
    const { scrollTop, scrollHeight, clientHeight } = element;
    const is_at_end = scrollHeight - scrollTop - clientHeight <= NEAR_PX && !newer;
    if (is_at_end !== follows && (is_at_end || scrollTop < held.current.top)) onFollow(is_at_end);
    const item = virtualizer.getVirtualItemForOffset(scrollTop);
    if (item)
      held.current = {
        anchor: rows[item.index]?.first.seq ?? 0,
        delta: scrollTop - item.start,
        top: scrollTop,
      };
  };
}

/** Reads older or newer events before the user reaches them. */
function useReadingAhead(
  { range, loading, errors, readOlder, readNewer }: Events,
  row_count: number,
  virtualizer: List,
): void {
  const items = virtualizer.getVirtualItems();
  const [top, bottom] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  // biome-ignore lint/correctness/useExhaustiveDependencies: checked at each step towards an end
  useEffect(() => {
    if (loading) return;
    if (top < AHEAD && range.older && errors.older === undefined) readOlder();
    else if (bottom >= row_count - AHEAD && range.newer && errors.newer === undefined) readNewer();
  }, [top, bottom, loading, range.older, range.newer]);
}
