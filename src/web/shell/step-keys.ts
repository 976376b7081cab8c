/** `n` and `p` go to the next and previous question, failure, change or match. Disabled if single-key shortcuts are off. */
import { useEffect, useRef } from 'react';
import { hasModifier, isTyping } from '../ui/keys.ts';
import { appearance } from './appearance.ts';

/** `step`: null if there is nothing to go to. */
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
