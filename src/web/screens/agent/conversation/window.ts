/**
 * Which items of a conversation are on the page, and the scroll position. At the end, the page follows new items. After the
 * user scrolls up, the position stays: new items are counted, and rows are added when the user scrolls near them.
 */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useScrolling } from '../../../ui/scrolling.ts';
import { OPEN_CARD } from '../../../waiting/focus.ts';
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

/** Space above a card at the top of the window, in pixels, for the header of its turn: the scroll padding of the list. */
const CARD_MARGIN = 32;

interface End {
  /** Scrolls to the end. If an open card there does not fit, its beginning is in view, until the reader has passed it. */
  place: () => void;
  /** Whether the page is where `place` has put it. */
  isPlaced: () => boolean;
  /** Whether the page is at the beginning of a card. */
  isAtCard: () => boolean;
  /** Says that the reader has seen the newest card, or wants to see its end. */
  passCard: () => void;
}

/** Keeps a live page at the end when its rows grow or images load. */
function useEnd(
  live: boolean,
  isLive: () => boolean,
  scroller: RefObject<HTMLDivElement | null>,
  content: RefObject<HTMLDivElement | null>,
): End {
  const placed = useRef(0);
  /** The cards, by their id. */
  const at_card = useRef<string | null>(null);
  const passed = useRef<string | null>(null);
  const place = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const end = box.scrollHeight - box.clientHeight;
    const card = newestCard(box);
    const id = card?.dataset.waiting ?? null;
    const top = card ? card.getBoundingClientRect().top - topOf(box) + box.scrollTop - CARD_MARGIN : end;
    // A card that is out of view at the end has a button that leads to it.
    const is_shown = card !== null && (at_card.current === id || top + card.offsetHeight > end);
    at_card.current = is_shown && id !== passed.current && top < end ? id : null;
    box.scrollTop = at_card.current === null ? end : top;
    placed.current = box.scrollTop;
  }, [scroller]);
  /** The content has grown while the reader was scrolling. */
  const is_late = useRef(false);
  const isScrolling = useScrolling(scroller, (is_scrolling) => {
    if (!is_scrolling && is_late.current && isLive()) place();
    is_late.current = false;
  });
  useLayoutEffect(() => {
    if (live) place();
  }, [live, place]);
  useEffect(() => {
    const [box, inner] = [scroller.current, content.current];
    if (!box || !inner) return;
    const observer = new ResizeObserver(() => {
      if (isScrolling()) is_late.current = true;
      else if (isLive()) place();
    });
    observer.observe(inner);
    observer.observe(box);
    return () => observer.disconnect();
  }, [isLive, isScrolling, place, scroller, content]);
  return useMemo(
    () => ({
      place,
      isPlaced: () => Math.abs((scroller.current?.scrollTop ?? 0) - placed.current) < 2,
      isAtCard: () => at_card.current !== null,
      passCard: () => {
        passed.current = newestCard(scroller.current)?.dataset.waiting ?? null;
      },
    }),
    [place, scroller],
  );
}

function newestCard(box: HTMLElement | null): HTMLElement | null {
  return [...(box?.querySelectorAll<HTMLElement>(OPEN_CARD) ?? [])].at(-1) ?? null;
}

function topOf(element: Element): number {
  return element.getBoundingClientRect().top;
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
  state: {
    isLive: () => boolean;
    isComplete: boolean;
    page_end: End;
    followNewest: () => void;
    leave: () => void;
  },
): Reader {
  const top = useRef(0);
  const linked = useRef(false);
  const { isLive, isComplete, page_end, followNewest, leave } = state;
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
    if (linked.current || (isLive() && page_end.isPlaced())) return;
    if (isAtEnd()) {
      if (!isLive()) {
        if (box.scrollTop >= before) followNewest();
      } else if (page_end.isAtCard()) page_end.passCard();
    } else if (box.scrollTop < before - 1 || page_end.isAtCard()) leave();
  };
  const setLinked = useCallback(() => {
    linked.current = true;
  }, []);
  return { onScroll, setLinked };
}

interface HeldRow {
  /** Of its item: the element may be replaced. */
  key: string;
  /** Distance from the top of the window, in pixels. */
  top: number;
}

/** The first row that is in view, not one around it: earlier rows may be added inside an open sub-agent. */
function topRow(box: HTMLElement): HeldRow | null {
  const edge = topOf(box);
  const rows = [...box.querySelectorAll<HTMLElement>('[data-row]')];
  const row = rows.find(
    (one) => one.getBoundingClientRect().bottom > edge && one.querySelector('[data-row]') === null,
  );
  return row ? { key: row.dataset.item!, top: topOf(row) } : null;
}

function restoreRow(box: HTMLElement, { key, top }: HeldRow): void {
  const row = findElement(box, key);
  if (row) box.scrollTop += topOf(row) - top;
}

/** The element of an item, if it is on the page. Its key may contain any text, such as the id of a sub-agent. */
export function findElement(box: HTMLElement, key: string): Element | null {
  return box.querySelector(`[data-item="${CSS.escape(key)}"]`);
}

/**
 * When the window starts earlier or later, keeps the end of a live page in view, else the row for which the returned function
 * was called, whatever arrives below.
 */
function useHeldRow(
  start: number,
  scroller: RefObject<HTMLDivElement | null>,
  isLive: () => boolean,
  page_end: End,
): () => void {
  const held = useRef<HeldRow | null>(null);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (isLive()) page_end.place();
    else if (box && held.current && start >= 0) restoreRow(box, held.current);
    held.current = null;
  }, [start, scroller, isLive, page_end]);
  return useCallback(() => {
    held.current = scroller.current && topRow(scroller.current);
  }, [scroller]);
}

/** The range that the reader has chosen; null: the window is live. */
function useRange() {
  const [range, setRange] = useState<ScrollRange | null>(null);
  /**
   * The size of the live window, until the reader leaves it. It grows while its rows do not fill the screen: a sub-agent is
   * one row, whatever it did.
   */
  const [pages, setPages] = useState(1);
  const latest = useRef(range);
  /** Where the window is, while `range` is where it was rendered. */
  const getRange = useCallback(() => latest.current, []);
  const isLive = useCallback(() => latest.current === null, []);
  const move = useCallback((to: ScrollRange | null) => {
    latest.current = to;
    setRange(to);
    // Once the reader has left the end, the range says what is shown. Later rows there may fill the screen.
    if (to !== null) setPages(1);
  }, []);
  return { range, getRange, isLive, move, pages, setPages };
}

export function useWindow({ left_out, total }: Length): Window {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { range, getRange, isLive, move, pages, setPages } = useRange();
  const live = range === null;
  const start = windowStart(range?.first ?? null, { left_out, total, pages });
  const end = range ? Math.min(total, Math.max(start, range.last - left_out)) : total;
  const all = left_out + total;

  const page_end = useEnd(live, isLive, scroller, content);
  const holdRow = useHeldRow(start, scroller, isLive, page_end);

  const leave = useCallback(() => {
    if (isLive()) move({ first: left_out + start, last: all + PAGE, left_at: all });
  }, [isLive, move, left_out, start, all]);

  const followNewest = useCallback(() => {
    move(null);
    page_end.passCard();
    page_end.place();
  }, [move, page_end]);

  const { onScroll, setLinked } = useReader(scroller, {
    isLive,
    isComplete: end === total,
    page_end,
    followNewest,
    leave,
  });

  // The edges of a window that has moved are still on the page until it is rendered, and must not move it back.
  const showOlder = useCallback(() => {
    const at = getRange();
    const has_moved = windowStart(at?.first ?? null, { left_out, total, pages }) !== start;
    if (start === 0 || has_moved) return;
    if (at === null) {
      setPages(pages + 1);
      return;
    }
    holdRow();
    move({ ...at, first: left_out + Math.max(0, start - PAGE) });
  }, [getRange, move, setPages, holdRow, pages, left_out, total, start]);

  const showNewer = useCallback(() => {
    if (range && getRange() === range) move({ ...range, last: Math.min(all, left_out + end) + PAGE });
  }, [getRange, move, range, left_out, end, all]);

  const show = useCallback(
    (at: number) => {
      setLinked();
      const first = left_out + Math.max(0, at - 20);
      move({ first, last: left_out + at + PAGE, left_at: all });
    },
    [move, setLinked, left_out, all],
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
