/** Theme, shortcuts and the key that sends a prompt, stored in the browser. */
import { useSyncExternalStore } from 'react';
import { store } from '../storage.ts';
import { APPEARANCE_KEY, applyTheme, is_dark, parseTheme, type Theme } from './theme.ts';

export interface Appearance {
  theme: Theme;
  /** Single-key shortcuts. */
  shortcuts: boolean;
  /** Enter sends a prompt. Otherwise it starts a new line, as it always does on touch screens. */
  enter_sends: boolean;
  /** How the sidebar of wide screens looks. */
  sidebar: 'full' | 'icons';
}

const listeners = new Set<() => void>();
let current: Appearance = read();

function read(): Appearance {
  let stored: Partial<Appearance> = {};
  try {
    stored = JSON.parse(localStorage.getItem(APPEARANCE_KEY) ?? '{}') as Partial<Appearance>;
  } catch {}
  return {
    theme: parseTheme(stored.theme),
    shortcuts: stored.shortcuts !== false,
    enter_sends: stored.enter_sends !== false,
    sidebar: stored.sidebar === 'icons' ? 'icons' : 'full',
  };
}

export function applyAppearance(): void {
  applyTheme(current.theme);
}

is_dark?.addEventListener('change', applyAppearance);
globalThis.addEventListener?.('storage', (event) => {
  if (event.key !== APPEARANCE_KEY) return;
  current = read();
  applyAppearance();
  for (const listener of listeners) listener();
});

export function setAppearance(change: Partial<Appearance>): void {
  current = { ...current, ...change };
  store(APPEARANCE_KEY, JSON.stringify(current));
  applyAppearance();
  for (const listener of listeners) listener();
}

export function appearance(): Appearance {
  return current;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useAppearance(): Appearance {
  return useSyncExternalStore(subscribe, appearance, appearance);
}
