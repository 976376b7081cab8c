/**
 * The few objects of browsers that the modules of the UI use when they are loaded or rendered for the first time. Imported
 * before them.
 */

const stored = new Map<string, string>();
let is_phone = false;

/** Sets whether the pages that are rendered next are for the screen of a phone. */
export function setPhone(value: boolean): void {
  is_phone = value;
}

/** All other queries are about input devices and the like, and change little. */
const PHONE_QUERY = '(width < 768px)';

Object.defineProperties(globalThis, {
  localStorage: {
    value: {
      getItem: (key: string) => stored.get(key) ?? null,
      setItem: (key: string, value: string) => void stored.set(key, value),
      removeItem: (key: string) => void stored.delete(key),
    },
  },
  // With the fragment of a complete join link.
  location: { value: new URL('http://svc.invalid/#t=token') },
  history: { value: { state: null, replaceState: () => {} } },
  matchMedia: {
    value: (query: string) => ({
      get matches() {
        return is_phone && query === PHONE_QUERY;
      },
      addEventListener: () => {},
      removeEventListener: () => {},
    }),
  },
});
