/** Theme, shortcuts and the key that sends a prompt, stored in the browser. */
import { useSyncExternalStore } from 'react';

const KEY = 'svc.appearance';

export interface Appearance {
  theme: 'system' | 'light' | 'dark';
  /** Single-key shortcuts. */
  shortcuts: boolean;
  /** Enter sends a prompt. Otherwise it starts a new line, as it always does on touch screens. */
  enter_sends: boolean;
  /** How the sidebar of wide screens looks. */
  sidebar: 'full' | 'icons';
}

const listeners = new Set<() => void>();
const dark = globalThis.matchMedia?.('(prefers-color-scheme: dark)');
let current: Appearance = read();

function read(): Appearance {
  let stored: Partial<Appearance> = {};
  try {
    stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Appearance>;
  } catch {}
  return {
    theme: stored.theme === 'light' || stored.theme === 'dark' ? stored.theme : 'system',
    shortcuts: stored.shortcuts !== false,
    enter_sends: stored.enter_sends !== false,
    sidebar: stored.sidebar === 'icons' ? 'icons' : 'full',
  };
}

export function applyAppearance(): void {
  const theme = current.theme === 'system' ? (dark?.matches ? 'dark' : 'light') : current.theme;
  document.documentElement.dataset.theme = theme;
}

dark?.addEventListener('change', applyAppearance);
globalThis.addEventListener?.('storage', (event) => {
  if (event.key !== KEY) return;
  current = read();
  applyAppearance();
  for (const listener of listeners) listener();
});

export function setAppearance(change: Partial<Appearance>): void {
  current = { ...current, ...change };
  localStorage.setItem(KEY, JSON.stringify(current));
  applyAppearance();
  for (const listener of listeners) listener();
}

export function appearance(): Appearance {
  return current;
}

export function useAppearance(): Appearance {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, appearance);
}
