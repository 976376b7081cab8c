/** The storage of a browser for tests of the web UI's modules, as one of its pages sees it. */
import { vi } from 'vitest';

export class BrowserStorage {
  readonly items = new Map<string, string>();
  /** Whether texts that are new or longer do not fit. */
  is_full = false;
  readonly #page = new EventTarget();

  /** Makes it the storage of modules that the test imports from now on, until `vi.unstubAllGlobals`. */
  static open(): BrowserStorage {
    const storage = new BrowserStorage();
    vi.resetModules();
    vi.stubGlobal('localStorage', {
      getItem: (key: string) => storage.items.get(key) ?? null,
      setItem: (key: string, text: string) => {
        if (storage.is_full) throw new DOMException('full', 'QuotaExceededError');
        storage.items.set(key, text);
      },
      removeItem: (key: string) => storage.items.delete(key),
    });
    vi.stubGlobal('addEventListener', storage.#page.addEventListener.bind(storage.#page));
    return storage;
  }

  /** Another page changes or removes (null) a text. Returns a function that notifies the page of it. */
  change(key: string, text: string | null): () => void {
    const values = { key, oldValue: this.items.get(key) ?? null, newValue: text };
    if (text === null) this.items.delete(key);
    else this.items.set(key, text);
    return () => this.#notify(values);
  }

  /** Another page removes everything. Returns a function like `change`. */
  clear(): () => void {
    this.items.clear();
    return () => this.#notify({ key: null, oldValue: null, newValue: null });
  }

  #notify(values: { key: string | null; oldValue: string | null; newValue: string | null }): void {
    this.#page.dispatchEvent(Object.assign(new Event('storage'), values));
  }
}
