/**
 * Which part of a conversation is on the page, and where it is scrolled to. At its end the page follows what comes; as soon as
 * somebody scrolls up, nothing moves any more: what comes is counted, and older or newer rows are added where they come into sight.
 */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { PAGE, startOf } from './rows.ts';

/** So close to the end is at the end. */
const NEAR = 40;

export interface Length {
  left_out: number;
  total: number;
}

interface Held {
  /** Of the first and after the last row, counted from the very first of the log. Null: the newest. */
  first: number;
  last: number;
  /** How long the log was when it was left. */
  left_at: number;
}

export interface Window {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  start: number;
  end: number;
  live: boolean;
  /** Came since the end was left. */
  news: number;
  hasOlder: boolean;
  onScroll: () => void;
  goLive: () => void;
  showOlder: () => void;
  showNewer: () => void;
  /** Brings an item into the window, by its place in the items. */
  show: (at: number) => void;
}

export function useWindow({ left_out, total }: Length): Window {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [held, setHeld] = useState<Held | null>(null);
  const live = held === null;
  const isLive = useRef(live);
  const top = useRef(0);
  /** The height below the top edge, to be kept while older rows come in above. */
  const kept = useRef<number | null>(null);
  const start = startOf(held?.first ?? null, { left_out, total });
  const end = held ? Math.min(total, Math.max(start, held.last - left_out)) : total;
  const all = left_out + total;

  useLayoutEffect(() => {
    isLive.current = live;
    const box = scroller.current;
    if (box && live) box.scrollTop = box.scrollHeight;
  }, [live]);

  // Rows grow and pictures appear: at the end the page stays at the end.
  useEffect(() => {
    const [box, inner] = [scroller.current, content.current];
    if (!box || !inner) return;
    const observer = new ResizeObserver(() => {
      if (isLive.current) box.scrollTop = box.scrollHeight;
    });
    observer.observe(inner);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && kept.current !== null && start >= 0) box.scrollTop = box.scrollHeight - kept.current;
    kept.current = null;
  }, [start]);

  const leave = useCallback(() => {
    if (!isLive.current) return;
    isLive.current = false;
    setHeld({ first: left_out + start, last: all + PAGE, left_at: all });
  }, [left_out, start, all]);

  const goLive = useCallback(() => {
    isLive.current = true;
    setHeld(null);
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, []);

  const onScroll = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const before = top.current;
    top.current = box.scrollTop;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (below < NEAR && end === total) {
      if (!isLive.current && box.scrollTop >= before) goLive();
    } else if (box.scrollTop < before - 1) leave();
  }, [end, total, goLive, leave]);

  const showOlder = useCallback(() => {
    const box = scroller.current;
    if (!box || start === 0) return;
    kept.current = box.scrollHeight - box.scrollTop;
    isLive.current = false;
    const first = left_out + Math.max(0, start - PAGE);
    setHeld((now) => ({ ...(now ?? { last: all + PAGE, left_at: all }), first }));
  }, [left_out, start, all]);

  const showNewer = useCallback(() => {
    setHeld((now) => now && { ...now, last: Math.min(all, left_out + end) + PAGE });
  }, [left_out, end, all]);

  const show = useCallback(
    (at: number) => {
      isLive.current = false;
      const first = left_out + Math.max(0, at - 20);
      setHeld({ first, last: left_out + at + PAGE, left_at: all });
    },
    [left_out, all],
  );

  return {
    scroller,
    content,
    start,
    end,
    live,
    news: held ? all - held.left_at : 0,
    hasOlder: start > 0,
    onScroll,
    goLive,
    showOlder,
    showNewer,
    show,
  };
}
