/** Whether the user is scrolling a list that follows its end. */
import { type RefObject, useCallback, useEffect, useRef } from 'react';
import { isTyping } from './keys.ts';

/** How long after the last input or scroll event the user is taken to be scrolling. */
const PAUSE_MS = 200;
const SCROLL_KEYS = ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home'];

/**
 * Calls `onChange` when the user begins to scroll the box with a wheel, a finger, a key or the scrollbar, before it moves, and
 * when the user has stopped. Meanwhile, the list must not go back to its end: while rows arrive in every frame, it would undo
 * each movement, and the user could not leave the end. Returns a function that says whether the user is scrolling.
 */
export function useScrolling(
  box: RefObject<HTMLElement | null>,
  onChange: (is_scrolling: boolean) => void,
): () => boolean {
  const latest = useRef(onChange);
  latest.current = onChange;
  const pause = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isScrolling = useCallback(() => pause.current !== undefined, []);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const onInput = () => {
      const begins = !isScrolling();
      clearTimeout(pause.current);
      pause.current = setTimeout(() => {
        pause.current = undefined;
        latest.current(false);
      }, PAUSE_MS);
      if (begins) latest.current(true);
    };
    const unmounted = new AbortController();
    const options = { passive: true, signal: unmounted.signal };
    element.addEventListener('wheel', onInput, options);
    // Not on the box: the row under the finger may be removed, and still gets the events.
    const onTouch = ({ target }: Event) => target!.addEventListener('touchmove', onInput, options);
    element.addEventListener('touchstart', onTouch, options);
    const onKey = (event: KeyboardEvent) => {
      if (SCROLL_KEYS.includes(event.key) && !isTyping(event)) onInput();
    };
    element.addEventListener('keydown', onKey, options);
    const onPointer = ({ target }: Event) => {
      // The scrollbar.
      if (target === element) onInput();
    };
    element.addEventListener('pointerdown', onPointer, options);
    // Momentum scrolling continues after the finger lifts.
    const onScroll = () => {
      if (isScrolling()) onInput();
    };
    element.addEventListener('scroll', onScroll, options);
    return () => {
      unmounted.abort();
      clearTimeout(pause.current);
      pause.current = undefined;
    };
  }, [box, isScrolling]);
  return isScrolling;
}
