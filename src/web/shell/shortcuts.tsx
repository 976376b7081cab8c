/**
 * Keyboard shortcuts of every screen. Single keys are ignored while the user types, below a dialog, and if they are turned
 * off. The palette's shortcut has a modifier and always works.
 */
import { Link, useNavigate } from '@tanstack/react-router';
import { useLayoutEffect, useRef, useState } from 'react';
import { hasModifier, isComposing, isTyping } from '../ui/keys.ts';
import { LazyDialog } from '../ui/lazy-dialog.tsx';
import { appearance } from './appearance.ts';
import { KeySequence } from './key-sequence.ts';
import { KeySheet } from './key-sheet.tsx';

export function Shortcuts({ onPalette }: { onPalette: () => void }) {
  const navigate = useNavigate();
  const [sheet, setSheet] = useState(false);
  const openPalette = useRef(onPalette);
  openPalette.current = onPalette;

  // A layout effect, so that shortcuts work as soon as the screen is visible.
  useLayoutEffect(() => {
    const sequence = new KeySequence();
    const press = (event: KeyboardEvent) => {
      if (isComposing(event)) return;
      if (event.key.toLowerCase() === 'k' && (event.metaKey || event.ctrlKey) && !event.altKey) {
        event.preventDefault();
        openPalette.current();
        return;
      }
      if (event.defaultPrevented || !appearance().shortcuts || hasModifier(event) || isTyping(event)) return;
      const is_second = sequence.isWaiting(event.timeStamp) && event.key.length === 1;
      const command = sequence.press(event.key, event.timeStamp);
      if (!command) {
        if (is_second) event.preventDefault();
        return;
      }
      switch (command.do) {
        case 'sheet':
          setSheet(true);
          break;
        case 'new_agent':
          void navigate({ to: '/agents/new' });
          break;
        case 'filter': {
          const filter = document.querySelector<HTMLElement>('[data-filter]');
          if (!filter) return;
          filter.focus();
          break;
        }
        case 'go':
          void navigate({ to: command.to });
      }
      event.preventDefault();
    };
    // The letter after `g` must be handled before any list handles it, for example `k`.
    const second = (event: KeyboardEvent) => {
      if (sequence.isWaiting(event.timeStamp) && !hasModifier(event)) press(event);
    };
    document.addEventListener('keydown', second, true);
    document.addEventListener('keydown', press);
    return () => {
      document.removeEventListener('keydown', second, true);
      document.removeEventListener('keydown', press);
    };
  }, [navigate]);

  return (
    <LazyDialog wide open={sheet} onClose={() => setSheet(false)} title="Keyboard shortcuts">
      <KeySheet />
      <p className="pt-4 text-muted">
        Single-key shortcuts can be{' '}
        <Link
          to="/settings/$tab"
          params={{ tab: 'shortcuts' }}
          onClick={() => setSheet(false)}
          className="underline"
        >
          turned off
        </Link>
        .
      </p>
    </LazyDialog>
  );
}
