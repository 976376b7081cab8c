/** `n` and `p` go to the next and the previous of what a screen counts: a failure, a change, a match. Off where single keys are off. */
import { useEffect, useRef } from 'react';
import { hasModifier, isTyping } from '../ui/keys.ts';
import { appearance } from './appearance.ts';

/** `step`: null where there is nothing to go to. */
export function useStepKeys(step: ((direction: 1 | -1) => void) | null): void {
  const held = useRef(step);
  held.current = step;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'n' && event.key !== 'p') return;
      if (!held.current || event.defaultPrevented || !appearance().shortcuts) return;
      if (hasModifier(event) || isTyping(event)) return;
      event.preventDefault();
      held.current(event.key === 'n' ? 1 : -1);
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}
