import { afterEach, expect, test, vi } from 'vitest';
import { BrowserStorage } from '../testing/browser-storage.ts';
import { readStored, store } from './storage.ts';

afterEach(() => vi.unstubAllGlobals());

test('text that does not fit into the storage is kept on the page, until there is room', () => {
  const items = new Map([['a', 'old']]);
  let is_full = true;
  vi.stubGlobal('localStorage', {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, text: string) => {
      if (is_full) throw new DOMException('full', 'QuotaExceededError');
      items.set(key, text);
    },
    removeItem: (key: string) => items.delete(key),
  });
  store('a', 'new');
  expect(readStored('a')).toBe('new');
  is_full = false;
  store('a', 'newer');
  expect([readStored('a'), items.get('a')]).toEqual(['newer', 'newer']);
  is_full = true;
  store('a', 'newest');
  store('a', null);
  expect([readStored('a'), items.size]).toEqual([null, 0]);
});

test('another page that clears the storage also clears what did not fit into it', async () => {
  const storage = BrowserStorage.open();
  const page = await import('./storage.ts');
  storage.is_full = true;
  page.store('a', 'new');
  storage.clear()();
  expect(page.readStored('a')).toBeNull();
});
