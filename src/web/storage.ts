/** Text in the browser's storage. If the storage is full, the text is kept on the page only, until another page changes it. */

const unstored = new Map<string, string>();

globalThis.addEventListener?.('storage', ({ key }) => {
  // Null: the storage was cleared.
  if (key === null) unstored.clear();
  else unstored.delete(key);
});

export function readStored(key: string): string | null {
  return unstored.get(key) ?? localStorage.getItem(key);
}

/** Null removes the text. */
export function store(key: string, text: string | null): void {
  unstored.delete(key);
  if (text === null) localStorage.removeItem(key);
  else {
    try {
      localStorage.setItem(key, text);
    } catch {
      unstored.set(key, text);
    }
  }
}
