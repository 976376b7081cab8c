/** Marks the changed parts within lines of a diff, and highlights its syntax. */
import type { Hunk } from 'gitdiff-parser';
import { useCallback, useSyncExternalStore } from 'react';
import { type HunkTokens, markEdits, type TokenNode, tokenize } from 'react-diff-view';
import { detectLanguage, type Language } from './languages.ts';

/** Marking changes within lines is slow, so longer diffs go without it. */
const LINES_MAX = 1_000;
/** A worker that takes longer is terminated, and the diff stays without colors. */
const HIGHLIGHT_MS_MAX = 5_000;

export interface HighlightRequest {
  language: Language;
  /** The old and the new lines. */
  texts: string[];
}
/** The highlighted nodes of each text. */
export type Highlighted = TokenNode[][];

/** Null for too many lines. `hunks` must be the same array while its lines are the same. */
export function useTokens(path: string, hunks: Hunk[]): HunkTokens | null {
  const entry = entryOf(path, hunks);
  const subscribe = useCallback((listener: () => void) => entry?.subscribe(listener) ?? (() => {}), [entry]);
  return useSyncExternalStore(subscribe, () => entry?.tokens ?? null);
}

const entries = new WeakMap<Hunk[], Entry | null>();

function entryOf(path: string, hunks: Hunk[]): Entry | null {
  let entry = entries.get(hunks);
  if (entry === undefined) {
    // Not with `countLines`, which would load the comparison of texts with every diff.
    const lines = hunks.reduce((sum, { changes }) => sum + changes.length, 0);
    entry = lines <= LINES_MAX ? new Entry(detectLanguage(path), hunks) : null;
    entries.set(hunks, entry);
  }
  return entry;
}

/** The tokens of one diff, which are colored once, however often its lines are shown. */
class Entry {
  tokens: HunkTokens;
  readonly #texts: string[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #language: Language | null;
  readonly #hunks: Hunk[];
  #is_colored = false;
  #cancel: (() => void) | null = null;

  constructor(language: Language | null, hunks: Hunk[]) {
    this.#language = language;
    this.#hunks = hunks;
    this.tokens = tokenizeHunks(hunks, (text) => {
      this.#texts.push(text);
      return [{ type: 'text', value: text }];
    });
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (!this.#is_colored) this.#cancel ??= this.#color();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#cancel?.();
      this.#cancel = null;
    };
  }

  #color(): (() => void) | null {
    if (this.#language === null) return null;
    const texts = this.#texts;
    return highlight({ language: this.#language, texts }, (highlighted) => {
      const nodes = new Map(texts.map((text, at) => [text, highlighted[at] ?? []]));
      this.tokens = tokenizeHunks(this.#hunks, (text) => nodes.get(text) ?? []);
      this.#is_colored = true;
      for (const listener of this.#listeners) listener();
    });
  }
}

function tokenizeHunks(hunks: Hunk[], highlight: (text: string) => TokenNode[]): HunkTokens {
  const enhancers = [markEdits(hunks, { type: 'block' })];
  // The library expects a `highlight` that returns only the nodes.
  return tokenize(hunks, { enhancers, highlight: true, language: '', refractor: { highlight } as never });
}

/** Highlights in a worker. Returns a function that terminates it. */
function highlight(request: HighlightRequest, onDone: (highlighted: Highlighted) => void): () => void {
  const worker = new Worker(new URL('./highlighting.ts', import.meta.url), {
    type: 'module',
    name: 'svc-highlighting',
  });
  const end = () => {
    clearTimeout(late);
    worker.terminate();
  };
  const late = setTimeout(end, HIGHLIGHT_MS_MAX);
  worker.onerror = end;
  worker.onmessage = ({ data }: MessageEvent<Highlighted>) => {
    end();
    onDone(data);
  };
  worker.postMessage(request);
  return end;
}
