/** Marks the changed parts within lines of a diff, and highlights its syntax. */
import type { Hunk } from 'gitdiff-parser';
import { useCallback, useSyncExternalStore } from 'react';
import { type HunkTokens, markEdits, type TokenizeEnhancer, type TokenNode, tokenize } from 'react-diff-view';
import { detectLanguage, type Language } from './languages.ts';
import { countChars, quickToMark } from './mark-work.ts';

/** Longer diffs are shown without colors and marks. */
const LINES_MAX = 1_000;
const CHARS_MAX = 100_000;
/** A worker that takes longer is terminated, and the diff stays without colors. */
const HIGHLIGHT_MS_MAX = 5_000;

export interface HighlightRequest {
  language: Language;
  /** The old and the new lines. */
  texts: string[];
}
/** The highlighted nodes of each text. */
export type Highlighted = TokenNode[][];

/** Null for too long a diff. `hunks` must be the same array while its lines are the same. */
export function useTokens(path: string, hunks: Hunk[]): HunkTokens | null {
  const entry = entryOf(path, hunks);
  const subscribe = useCallback((listener: () => void) => entry?.subscribe(listener) ?? (() => {}), [entry]);
  return useSyncExternalStore(subscribe, () => entry?.tokens ?? null);
}

const entries = new WeakMap<Hunk[], Entry | null>();

function entryOf(path: string, hunks: Hunk[]): Entry | null {
  let entry = entries.get(hunks);
  if (entry === undefined) {
    const changes = hunks.flatMap((hunk) => hunk.changes);
    const is_short = changes.length <= LINES_MAX && countChars(changes) <= CHARS_MAX;
    entry = is_short ? new Entry(detectLanguage(path), hunks) : null;
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
  readonly #marks: TokenizeEnhancer;
  #is_colored = false;
  #cancel: (() => void) | null = null;

  constructor(language: Language | null, hunks: Hunk[]) {
    this.#language = language;
    this.#hunks = hunks;
    this.#marks = markEdits(quickToMark(hunks), { type: 'block' });
    this.tokens = this.#tokenize((text) => {
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
      this.tokens = this.#tokenize((text) => nodes.get(text) ?? []);
      this.#is_colored = true;
      for (const listener of this.#listeners) listener();
    });
  }

  #tokenize(highlight: (text: string) => TokenNode[]): HunkTokens {
    // The library expects a `highlight` that returns only the nodes.
    const options = { highlight: true, language: '', refractor: { highlight } as never } as const;
    return tokenize(this.#hunks, { enhancers: [this.#marks], ...options });
  }
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
