/**
 * `j` and `k` move through a list, Enter opens, Esc closes. A row is any element with `data-row` in the container. The row
 * gets the focus, or the first focusable element in it, if there is one. Disabled if single-key shortcuts are off.
 */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { hasModifier, isTyping } from '../ui/keys.ts';
import { appearance } from './appearance.ts';

const FOCUSABLE =
  'a[href],button:not(:disabled),input:not(:disabled),select,textarea,[tabindex]:not([tabindex="-1"])';

/** Other keys that act on the focused row. */
export type RowKeys = Readonly<Record<string, (row: HTMLElement) => void>>;

/** No further keys. */
export const NO_ROW_KEYS: RowKeys = {};

export interface ListKeys {
  rowKeys?: RowKeys;
  /** Called on Enter on a row that is not a link or button; the default is to click the row. */
  onOpen?: (row: HTMLElement) => void;
  /** Called on Esc; by default the row loses the focus. */
  onClose?: () => void;
}

export function useListKeys(
  container: RefObject<HTMLElement | null>,
  { rowKeys = NO_ROW_KEYS, onOpen, onClose }: ListKeys = {},
): void {
  const latest = useRef({ rowKeys, onOpen, onClose });
  latest.current = { rowKeys, onOpen, onClose };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || hasModifier(event) || isTyping(event) || !container.current) return;
      if (!appearance().shortcuts && event.key.length === 1) return;
      // A screen may have a table and cards, and show one of them.
      const rows = [...container.current.querySelectorAll<HTMLElement>('[data-row]')].filter((one) =>
        one.checkVisibility(),
      );
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
          // The browser handles a focused link or button in the row.
          if (!row || document.activeElement !== row || row.matches('a[href],button')) return;
          if (latest.current.onOpen) latest.current.onOpen(row);
          else row.click();
          break;
        case 'Escape':
          if (latest.current.onClose) latest.current.onClose();
          else if (row) (document.activeElement as HTMLElement).blur();
          else return;
          break;
        default: {
          const act = latest.current.rowKeys[event.key];
          // A held key must not confirm its own first press.
          if (!row || !act || event.repeat) return;
          act(row);
        }
      }
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [container]);
}

/** The row after a step from row `at` of `count`, within the list; -1 is before the first row. */
export function nextRow(at: number, step: 1 | -1, count: number): number {
  return Math.min(Math.max(at + step, 0), count - 1);
}

function focusRow(row: HTMLElement): void {
  const target = row.matches(`${FOCUSABLE},[tabindex]`) ? row : row.querySelector<HTMLElement>(FOCUSABLE);
  // Without the focus on this row, the next key would start at the first row again.
  if (!target) row.tabIndex = -1;
  (target ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
