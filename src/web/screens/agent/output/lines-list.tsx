/**
 * The virtual list of output lines. It follows the end until the user scrolls up; then neither new lines nor dropped old
 * ones move the visible lines.
 */
import {
  defaultRangeExtractor,
  type Range as Shown,
  useVirtualizer,
  type Virtualizer,
} from '@tanstack/react-virtual';
import {
  type MouseEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useCallback,
  useImperativeHandle,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import type { Lines } from '../../../transcript/lines.ts';
import { cx } from '../../../ui/cx.ts';
import { useTouch } from '../../../ui/media.ts';
import { useScrolling } from '../../../ui/scrolling.ts';
import { LineRow } from './line-row.tsx';
import type { Options } from './options.ts';
import { includesLine, type Range } from './range.ts';

const ROW_PX = 20;
/** A finger needs this much to hit the number of a line. */
const TOUCH_ROW_PX = 24;
const OVERSCAN = 4;
/** Distance from the end, in pixels, that counts as the end. */
const NEAR_PX = 12;

export interface ListHandle {
  /** Scrolls a line into the middle. */
  show(n: number): void;
  toEnd(): void;
  /** Stops following the end. */
  stay(): void;
  /** The number of the first visible line. */
  top(): number;
}

export interface LinesListProps {
  lines: Lines;
  /** Changes with every added line. */
  version: number;
  options: Options;
  range: Range | null;
  onChoose: (n: number, extend: boolean) => void;
  pattern: RegExp | null;
  current: number | null;
  /** Called when it starts or stops to follow the end. */
  onFollow: (follows: boolean) => void;
  /** Shown after the last line. */
  end: ReactNode;
  ref: Ref<ListHandle>;
}

export function LinesList(props: LinesListProps) {
  const { lines, options, range, onChoose, pattern, current, end } = props;
  const { wrap, times } = options;
  const { first, last } = lines;
  const scroller = useRef<HTMLDivElement>(null);
  const [follows, setFollows] = useState(true);
  const [is_scrolling, setScrolling] = useState(false);
  useScrolling(scroller, setScrolling);
  const may_follow = follows && !is_scrolling;
  const height = useTouch() ? TOUCH_ROW_PX : ROW_PX;
  const virtualizer = useVirtualizer({
    count: last - first + 1,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    getItemKey: useCallback((index: number) => first + index, [first]),
    // At the end, the last rows are rendered before the browser has scrolled there.
    rangeExtractor: useCallback(
      (shown: Shown) => (may_follow ? lastIndexes(shown) : defaultRangeExtractor(shown)),
      [may_follow],
    ),
  });
  const position = { ...props, height, may_follow };
  const onScroll = useScrollPosition(position, scroller, virtualizer, setFollows);

  const choose = (event: MouseEvent) => {
    const link = (event.target as Element).closest('a');
    const row = link?.closest<HTMLElement>('[data-line]');
    // With a modifier, the link opens in a new tab.
    if (!row || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    onChoose(Number(row.dataset.line), event.shiftKey);
  };

  const items = virtualizer.getVirtualItems();
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the clicks are on links; keyboard users select lines with "Go to line"
    <section
      ref={scroller}
      aria-label="Output"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
      tabIndex={0}
      onScroll={onScroll}
      onClick={choose}
      className="scroll-y min-h-0 flex-1 overflow-x-auto bg-ground font-mono text-sm leading-5 pointer-coarse:leading-6 outline-offset-[-2px] [overflow-anchor:none]"
    >
      <div className="relative min-w-full" style={{ height: virtualizer.getTotalSize() }}>
        <div
          className={cx('absolute top-0 left-0 min-w-full', wrap ? 'w-full' : 'w-max')}
          style={{ transform: `translateY(${items[0]?.start ?? 0}px)` }}
        >
          {items.map(({ index, key }) => {
            const line = lines.at(first + index);
            return (
              line && (
                <LineRow
                  key={key}
                  line={line}
                  index={index}
                  ref={wrap ? virtualizer.measureElement : undefined}
                  pattern={pattern}
                  chosen={includesLine(range, line.n)}
                  current={current === line.n}
                  wrap={wrap}
                  times={times}
                  digits={Math.max(3, String(last).length)}
                />
              )
            );
          })}
        </div>
      </div>
      {end}
    </section>
  );
}

/** Follows the end until the user scrolls up, and then keeps the visible lines in place. Returns the scroll handler. */
function useScrollPosition(
  {
    lines,
    version,
    options: { wrap, times },
    onFollow,
    end,
    ref,
    height,
    may_follow,
  }: LinesListProps & { height: number; may_follow: boolean },
  scroller: RefObject<HTMLDivElement | null>,
  virtualizer: Virtualizer<HTMLDivElement, Element>,
  setFollows: (follows: boolean) => void,
): () => void {
  const { first, last } = lines;
  /** `top` and `end`: the scroll position, and the one at the end of the list. */
  const state = useRef({ follows: true, top: 0, end: 0, anchor: 1, delta: 0 });
  const hold = (element: HTMLElement) => {
    state.current.top = element.scrollTop;
    state.current.end = element.scrollHeight - element.clientHeight;
  };
  const follow = (next: boolean) => {
    state.current.follows = next;
    // The browser may still report how it scrolled to the end.
    if (scroller.current && !next) hold(scroller.current);
    setFollows(next);
    onFollow(next);
  };
  useImperativeHandle(ref, () => ({
    show(n) {
      if (n < lines.first || n > lines.last) return;
      follow(false);
      virtualizer.scrollToIndex(n - lines.first, { align: 'center' });
    },
    toEnd() {
      follow(true);
      scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
    },
    stay: () => follow(false),
    top: () => lines.first + (virtualizer.getVirtualItemForOffset(virtualizer.scrollOffset ?? 0)?.index ?? 0),
  }));

  useEnd(scroller, may_follow, [version, virtualizer.getTotalSize(), end]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: wrapping and another pointer change the heights
  useLayoutEffect(() => {
    virtualizer.measure();
  }, [wrap, times, height]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only when lines above, or their heights, change
  useLayoutEffect(() => {
    const { follows: is_at_end, anchor, delta } = state.current;
    if (is_at_end || last < first) return;
    const item = virtualizer.measurementsCache[Math.max(anchor, first) - first];
    if (item && scroller.current) scroller.current.scrollTop = item.start + delta;
  }, [first, wrap, times, height]);

  return () => {
    const element = scroller.current;
    if (!element) return;
    const held = state.current;
    const { scrollTop, scrollHeight, clientHeight } = element;
    const list_end = scrollHeight - clientHeight;
    const is_at_end = list_end - scrollTop <= NEAR_PX;
    // Lines that are added below do not count as scrolling up. A list that became shorter may end where the user is.
    const has_moved = is_at_end ? scrollTop > held.top || list_end < held.end : scrollTop < held.top;
    if (is_at_end !== held.follows && has_moved) follow(is_at_end);
    hold(element);
    const item = virtualizer.getVirtualItemForOffset(scrollTop);
    if (item) [held.anchor, held.delta] = [first + item.index, scrollTop - item.start];
  };
}

/** Scrolls to the end if it has moved: if lines were added or measured, or the row after them has changed. */
function useEnd(scroller: RefObject<HTMLElement | null>, may_follow: boolean, causes: readonly unknown[]) {
  const followed = useRef<readonly unknown[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the causes are the other dependencies
  useLayoutEffect(() => {
    const is_new = causes.some((cause, at) => cause !== followed.current[at]);
    if (!scroller.current || !may_follow || !is_new) return;
    followed.current = causes;
    scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [may_follow, ...causes]);
}

function lastIndexes({ startIndex, endIndex, overscan, count }: Shown): number[] {
  const size = Math.min(count, endIndex - startIndex + 1 + overscan);
  return Array.from({ length: size }, (_, at) => count - size + at);
}
