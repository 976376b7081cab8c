/**
 * `j` and `k` move through a list, Enter opens, Esc closes. A row is any element with `data-row` in the container; what
 * gets the focus is the row where it can have it, else the first thing in it that can. Off where single keys are off.
 */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { hasModifier, isTyping } from '../ui/keys.ts';
import { appearance } from './appearance.ts';

const FOCUSABLE =
  'a[href],button:not(:disabled),input:not(:disabled),select,textarea,[tabindex]:not([tabindex="-1"])';

export interface ListKeys {
  /** Enter on a row that is no link or button itself; without it the row is clicked. */
  onOpen?: (row: HTMLElement) => void;
  /** Esc; without it the row loses the focus. */
  onClose?: () => void;
}

export function useListKeys(
  container: RefObject<HTMLElement | null>,
  { onOpen, onClose }: ListKeys = {},
): void {
  const told = useRef({ onOpen, onClose });
  told.current = { onOpen, onClose };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || hasModifier(event) || isTyping(event) || !container.current) return;
      if (!appearance().shortcuts && event.key.length === 1) return;
      const rows = [...container.current.querySelectorAll<HTMLElement>('[data-row]')];
      const at = rows.findIndex((row) => row.contains(document.activeElement));
      const row = rows[at];
      switch (event.key) {
        case 'j':
        case 'k': {
          const next = rows[nextRow(at, event.key === 'j' ? 1 : -1, rows.length)];
          if (!next) return;
          focusRow(next);
          break;
        }
        case 'Enter':
          // A link or a button in the row opens by itself.
          if (!row || document.activeElement !== row || row.matches('a[href],button')) return;
          if (told.current.onOpen) told.current.onOpen(row);
          else row.click();
          break;
        case 'Escape':
          if (told.current.onClose) told.current.onClose();
          else if (row) (document.activeElement as HTMLElement).blur();
          else return;
          break;
        default:
          return;
      }
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [container]);
}

/** Where a step leads from row `at` of `count`; -1 is before the first. It stays within the list. */
export function nextRow(at: number, step: 1 | -1, count: number): number {
  return Math.min(Math.max(at + step, 0), count - 1);
}

function focusRow(row: HTMLElement): void {
  const target = row.matches(`${FOCUSABLE},[tabindex]`) ? row : row.querySelector<HTMLElement>(FOCUSABLE);
  target?.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
