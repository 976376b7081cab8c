import { type RefObject, useEffect } from 'react';

/** Smaller movements are those of a resting thumb. */
const MOVEMENT_PX = 4;

/**
 * Sets `data-scrolled="down"` on the header of a screen after the user scrolled down in the content after it, until the user
 * scrolls up or reaches the end. Does not render anything.
 */
export function useScrolledDown(header: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const tops = new WeakMap<Element, number>();
    const onScroll = ({ target }: Event) => {
      const element = header.current;
      if (!(target instanceof Element) || !element?.nextElementSibling?.contains(target)) return;
      const { scrollTop, clientHeight, scrollHeight } = target;
      const moved = scrollTop - (tops.get(target) ?? 0);
      const at_end = scrollTop + clientHeight >= scrollHeight - MOVEMENT_PX;
      // Also if it scrolled sideways.
      if (moved === 0 || (!at_end && Math.abs(moved) < MOVEMENT_PX)) return;
      tops.set(target, scrollTop);
      if (at_end || moved < 0) delete element.dataset.scrolled;
      else element.dataset.scrolled = 'down';
    };
    // Scrolling does not bubble, and some screens have several columns that scroll.
    const options = { capture: true, passive: true };
    document.addEventListener('scroll', onScroll, options);
    return () => document.removeEventListener('scroll', onScroll, options);
  }, [header]);
}
