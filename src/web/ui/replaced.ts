/** Guards buttons that take each other's place, such as *Stop* and *Restart*. `moved-rows.ts` guards those whose row moves. */
import { type MouseEvent, useLayoutEffect, useRef } from 'react';

/** For this long after the change, a click was meant for the button before: it may be the second one of a double click. */
const MEANT_FOR_OTHER_MS = 400;

/**
 * `action`: what the button does now. Returns a function that makes click handlers ignore clicks just after it has changed.
 * `busy`: the button does nothing, so the change only counts when it ends. `for_ms`: for how long they are ignored.
 */
export function useReplacedGuard(
  action: string,
  busy: boolean,
  { for_ms = MEANT_FOR_OTHER_MS } = {},
): (act: () => void) => (event: MouseEvent) => void {
  const offered = busy ? 'nothing' : action;
  const shown = useRef({ offered, since: Number.NEGATIVE_INFINITY });
  useLayoutEffect(() => {
    if (shown.current.offered !== offered) shown.current = { offered, since: performance.now() };
  }, [offered]);
  return (act) =>
    ({ timeStamp }) => {
      if (timeStamp >= shown.current.since + for_ms) act();
    };
}
