/** Keeps a line of a diff and the keyboard's focus in place while lines appear around it. */
import { type RefObject, useCallback, useLayoutEffect, useRef } from 'react';
import type { Place } from './parsed.ts';

interface Kept {
  place: Place;
  /** Its distance from the top of the page, in pixels. */
  top: number;
  is_focused: boolean;
}

/**
 * Returns a function to call before the lines change, with the place to keep. `lines`: a new value when they have changed.
 * `table`: what holds them. `findButton`: the button to focus if the focused one is gone.
 */
export function useKeepPlace(
  table: RefObject<HTMLElement | null>,
  scroller: RefObject<HTMLElement | null>,
  lines: unknown,
  findButton: (place: Place) => HTMLElement | null,
): (place: Place) => void {
  const kept = useRef<Kept | null>(null);
  const find = useRef(findButton);
  find.current = findButton;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the lines have changed
  useLayoutEffect(() => {
    const before = kept.current;
    kept.current = null;
    const line = before && findLine(table.current, before.place);
    if (!before || !line) return;
    scroller.current?.scrollBy({ top: line.getBoundingClientRect().top - before.top });
    const is_lost = document.activeElement === null || document.activeElement === document.body;
    if (before.is_focused && is_lost) (find.current(before.place) ?? line).focus({ preventScroll: true });
  }, [lines]);
  return useCallback(
    (place) => {
      const line = findLine(table.current, place);
      if (!line) return;
      const is_focused = table.current!.contains(document.activeElement);
      kept.current = { place, top: line.getBoundingClientRect().top, is_focused };
    },
    [table],
  );
}

/** The button with the number of a line. */
function findLine(table: HTMLElement | null, { side, line }: Place): HTMLElement | null {
  return table?.querySelector<HTMLElement>(`[data-line="${side}${line}"]`) ?? null;
}
