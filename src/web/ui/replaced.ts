/** Guards buttons that take each other's place, such as *Stop* and *Restart*. */
import { type MouseEvent, useLayoutEffect, useRef } from 'react';

/** For this long after the change, a click was meant for the button before: it may be the second one of a double click. */
const MEANT_FOR_OTHER_MS = 400;

/** `action`: what the button does now. Returns a function that makes click handlers ignore clicks just after it has changed. */
export function useReplacedGuard(action: string): (act: () => void) => (event: MouseEvent) => void {
  const shown = useRef({ action, since: Number.NEGATIVE_INFINITY });
  useLayoutEffect(() => {
    if (shown.current.action !== action) shown.current = { action, since: performance.now() };
  }, [action]);
  return (act) =>
    ({ timeStamp }) => {
      if (timeStamp >= shown.current.since + MEANT_FOR_OTHER_MS) act();
    };
}
