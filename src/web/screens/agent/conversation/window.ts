/**
 * Which items of a conversation are on the page, and the scroll position. At the end, the page follows new items. After the
 * user scrolls up, the position stays: new items are counted, and rows are added when the user scrolls near them.
 */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { PAGE, windowStart } from './rows.ts';

/** Distance from the end, in pixels, that counts as the end. */
const NEAR = 40;

export interface Length {
  left_out: number;
  total: number;
}

interface ScrollRange {
  /** The index of the first row and the one after the last, counted from the beginning of the log. */
  first: number;
  last: number;
  /** The length of the log when the user left its end. */
  left_at: number;
}

export interface Window {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  start: number;
  end: number;
  live: boolean;
  /** The number of items since the user left the end. */
  news: number;
  hasOlder: boolean;
  onScroll: () => void;
  followNewest: () => void;
  showOlder: () => void;
  showNewer: () => void;
  /** Moves the window to an item, by its index. It stays there until the reader moves it. */
  show: (at: number) => void;
}

/** Keeps a live page at the end when its rows grow or images load. Returns whether it is live. */
function useEnd(
  live: boolean,
  scroller: RefObject<HTMLDivElement | null>,
  content: RefObject<HTMLDivElement | null>,
): RefObject<boolean> {
  const isLive = useRef(live);
  useLayoutEffect(() => {
    isLive.current = live;
    const box = scroller.current;
    if (box && live) box.scrollTop = box.scrollHeight;
  }, [live, scroller]);
  useEffect(() => {
    const [box, inner] = [scroller.current, content.current];
    if (!box || !inner) return;
    const observer = new ResizeObserver(() => {
      if (isLive.current) box.scrollTop = box.scrollHeight;
    });
    observer.observe(inner);
    observer.observe(box);
    return () => observer.disconnect();
  }, [scroller, content]);
  return isLive;
}

/** What a reader does to move, or to go on working, on the page. */
const INPUTS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

interface Reader {
  onScroll: () => void;
  /** Says that a link chose the position. It stays until the reader does something. */
  setLinked: () => void;
}

/**
 * Follows the newest row when the reader scrolls to the end, and stops when the reader scrolls up. The browser reports the
 * scroll to a linked event like one by the reader; while the log still arrives, that event can be at the end of what has
 * arrived. Such scrolls count only once the reader has done something on the page.
 */
function useReader(
  scroller: RefObject<HTMLDivElement | null>,
  state: { isLive: RefObject<boolean>; isComplete: boolean; followNewest: () => void; leave: () => void },
): Reader {
  const top = useRef(0);
  const linked = useRef(false);
  const { isLive, isComplete, followNewest, leave } = state;
  const isAtEnd = () => {
    const box = scroller.current;
    return isComplete && box !== null && box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
  };
  const release = useRef(() => {});
  release.current = () => {
    if (!linked.current) return;
    linked.current = false;
    if (isAtEnd()) followNewest();
  };
  useEffect(() => {
    const onInput = () => release.current();
    for (const input of INPUTS) document.addEventListener(input, onInput, { capture: true, passive: true });
    return () => {
      for (const input of INPUTS) document.removeEventListener(input, onInput, { capture: true });
    };
  }, []);
  const onScroll = () => {
    const box = scroller.current;
    if (!box) return;
    const before = top.current;
    top.current = box.scrollTop;
    if (linked.current) return;
    if (isAtEnd()) {
      if (!isLive.current && box.scrollTop >= before) followNewest();
    } else if (box.scrollTop < before - 1) leave();
  };
  const setLinked = useCallback(() => {
    linked.current = true;
  }, []);
  return { onScroll, setLinked };
}

export function useWindow({ left_out, total }: Length): Window {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<ScrollRange | null>(null);
  const live = range === null;
  /** The height below the top edge, kept while older rows are added above. */
  const height = useRef<number | null>(null);
  const start = windowStart(range?.first ?? null, { left_out, total });
  const end = range ? Math.min(total, Math.max(start, range.last - left_out)) : total;
  const all = left_out + total;

  const isLive = useEnd(live, scroller, content);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && height.current !== null && start >= 0) box.scrollTop = box.scrollHeight - height.current;
    height.current = null;
  }, [start]);

  const leave = useCallback(() => {
    if (!isLive.current) return;
    isLive.current = false;
    setRange({ first: left_out + start, last: all + PAGE, left_at: all });
  }, [isLive, left_out, start, all]);

  const followNewest = useCallback(() => {
    isLive.current = true;
    setRange(null);
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, [isLive]);

  const { onScroll, setLinked } = useReader(scroller, {
    isLive,
    isComplete: end === total,
    followNewest,
    leave,
  });

  const showOlder = useCallback(() => {
    const box = scroller.current;
    if (!box || start === 0) return;
    height.current = box.scrollHeight - box.scrollTop;
    isLive.current = false;
    const first = left_out + Math.max(0, start - PAGE);
    setRange((now) => ({ ...(now ?? { last: all + PAGE, left_at: all }), first }));
  }, [isLive, left_out, start, all]);

  const showNewer = useCallback(() => {
    setRange((now) => now && { ...now, last: Math.min(all, left_out + end) + PAGE });
  }, [left_out, end, all]);

  const show = useCallback(
    (at: number) => {
      isLive.current = false;
      setLinked();
      const first = left_out + Math.max(0, at - 20);
      setRange({ first, last: left_out + at + PAGE, left_at: all });
    },
    [isLive, setLinked, left_out, all],
  );

  return {
    scroller,
    content,
    start,
    end,
    live,
    news: range ? all - range.left_at : 0,
    hasOlder: start > 0,
    onScroll,
    followNewest,
    showOlder,
    showNewer,
    show,
  };
}
