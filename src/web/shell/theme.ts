/** The theme of the page. `early.ts` applies it before the first paint, so this module imports nothing. */

/** The storage key of the appearance. */
export const APPEARANCE_KEY = 'svc.appearance';

export type Theme = 'system' | 'light' | 'dark';

export const is_dark = globalThis.matchMedia?.('(prefers-color-scheme: dark)');

export function parseTheme(stored: unknown): Theme {
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  const shown = theme === 'system' ? (is_dark?.matches ? 'dark' : 'light') : theme;
  document.documentElement.dataset.theme = shown;
}
