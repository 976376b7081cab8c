/** Guards buttons that take each other's place, such as *Stop* and *Restart*. */
import { type MouseEvent, useEffect, useLayoutEffect, useRef } from 'react';

/** For this long after the change, a click was meant for the button before: it may be the second one of a double click. */
const MEANT_FOR_OTHER_MS = 400;

interface Shown {
  offered: string;
  since: number;
}

/** What buttons have shown, by their place in the page. */
const places = new Map<string, Shown>();

/**
 * `action`: what the button does now. Returns a function that makes click handlers ignore clicks just after it has changed.
 * `busy`: the button does nothing, so the change only counts when it ends. `for_ms`: for how long they are ignored. `place`:
 * names the button if it may be mounted again, for example because its row moves to another part of a list.
 */
export function useReplacedGuard(
  action: string,
  busy: boolean,
  { for_ms = MEANT_FOR_OTHER_MS, place = null as string | null } = {},
): (act: () => void) => (event: MouseEvent) => void {
  const offered = busy ? 'nothing' : action;
  const shown = useRef<Shown>(null);
  // A copy: the earlier button, when it is gone, removes only what it has put there itself.
  shown.current ??= { offered, since: Number.NEGATIVE_INFINITY, ...(place && places.get(place)) };
  useLayoutEffect(() => {
    if (shown.current!.offered !== offered) shown.current = { offered, since: performance.now() };
    if (place) places.set(place, shown.current!);
  }, [offered, place]);
  useEffect(() => {
    if (place === null) return;
    return () => {
      const last = shown.current;
      setTimeout(() => places.get(place) === last && places.delete(place), for_ms);
    };
  }, [place, for_ms]);
  return (act) =>
    ({ timeStamp }) => {
      if (timeStamp >= shown.current!.since + for_ms) act();
    };
}
