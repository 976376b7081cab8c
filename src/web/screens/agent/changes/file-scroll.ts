/** The scroll position among the files: which file is at the top, and how to get to another one. */
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';

/** The height of the sticky header above the lines of a file. */
const HEADER_PX = 36;

export interface FileScroll {
  /** The path of the file at the top; null before the first scroll. */
  current: string | null;
  onScroll: () => void;
  scrollTo: (path: string) => void;
}

/** What a reader does to move on the page. */
const INPUTS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

/** `linked`: the file in the URL, which is shown first. `content`: what holds the sections. */
export function useFileScroll(
  scroller: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
  linked: string | undefined,
): FileScroll {
  const [current, setCurrent] = useState<string | null>(null);
  /** Stays at the top while the diffs above it are read, until the reader moves. */
  const held = useRef<string | null>(null);
  const onScroll = useCallback(() => {
    const box = scroller.current;
    const top = listSections(box).findLast(({ offsetTop }) => offsetTop <= box!.scrollTop + HEADER_PX);
    setCurrent(held.current ?? top?.dataset.path ?? null);
  }, [scroller]);
  const scrollTo = useCallback(
    (path: string) => {
      held.current = path;
      setCurrent(path);
      putOnTop(scroller.current, path);
    },
    [scroller],
  );
  useLayoutEffect(() => {
    if (linked !== undefined) scrollTo(linked);
  }, [linked, scrollTo]);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (held.current !== null) putOnTop(scroller.current, held.current);
    });
    if (content.current) observer.observe(content.current);
    const release = () => {
      held.current = null;
    };
    for (const input of INPUTS) document.addEventListener(input, release, { capture: true, passive: true });
    return () => {
      observer.disconnect();
      for (const input of INPUTS) document.removeEventListener(input, release, { capture: true });
    };
  }, [scroller, content]);
  return { current, onScroll, scrollTo };
}

function putOnTop(box: HTMLElement | null, path: string): void {
  const section = listSections(box).find(({ dataset }) => dataset.path === path);
  if (section) box!.scrollTop = section.offsetTop;
}

function listSections(box: HTMLElement | null): HTMLElement[] {
  return box ? [...box.querySelectorAll<HTMLElement>('[data-path]')] : [];
}

/** Scrolls to the next or previous hunk, or to a file whose hunks are not read yet. */
export function scrollToHunk(box: HTMLElement | null, direction: 1 | -1): void {
  if (!box) return;
  const edge = box.getBoundingClientRect().top + HEADER_PX;
  const hunks = [...box.querySelectorAll('.diff-decoration:has(+ .diff-hunk), [data-unread]')];
  const distances = hunks.map((hunk) => hunk.getBoundingClientRect().top - edge);
  const distance = direction === 1 ? distances.find((px) => px > 4) : distances.findLast((px) => px < -4);
  if (distance !== undefined) box.scrollBy({ top: distance });
}
