/** A tint of a row whose status has just changed, in the color of its text, so that a change is seen without a search. */
import { type RefObject, useEffect, useRef } from 'react';
import { useReducedMotion } from './media.ts';

const TINT_MS = 900;

/** Returns the row's ref. Nothing is tinted at first, only when `status` changes. */
export function useTint<E extends Element>(status: string): RefObject<E | null> {
  const row = useRef<E>(null);
  const last = useRef(status);
  const is_still = useReducedMotion();
  useEffect(() => {
    if (last.current === status) return;
    last.current = status;
    if (is_still) return;
    const from = { backgroundColor: 'color-mix(in srgb, currentcolor 14%, transparent)' };
    row.current?.animate([from, { backgroundColor: 'transparent' }], {
      duration: TINT_MS,
      easing: 'ease-out',
    });
  }, [status, is_still]);
  return row;
}
