/** Marks the changed parts within lines of a diff, and highlights its syntax. */
import type { Hunk } from 'gitdiff-parser';
import { useEffect, useMemo, useState } from 'react';
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
export function useTokens(path: string, hunks: Hunk[], lines: number): HunkTokens | null {
  const few = lines <= LINES_MAX;
  const language = detectLanguage(path);
  const plain = useMemo(() => (few ? plainTokens(hunks) : null), [hunks, few]);
  const [colored, setColored] = useState<{ of: HunkTokens; tokens: HunkTokens } | null>(null);
  useEffect(() => {
    if (!plain || language === null) return;
    const { texts, tokens } = plain;
    return highlight({ language, texts }, (highlighted) => {
      const nodes = new Map(texts.map((text, at) => [text, highlighted[at] ?? []]));
      setColored({ of: tokens, tokens: tokenizeHunks(hunks, (text) => nodes.get(text) ?? []) });
    });
  }, [hunks, plain, language]);
  if (!plain) return null;
  return colored?.of === plain.tokens ? colored.tokens : plain.tokens;
}

function tokenizeHunks(hunks: Hunk[], highlight: (text: string) => TokenNode[]): HunkTokens {
  const enhancers = [markEdits(hunks, { type: 'block' })];
  // The library expects a `highlight` that returns only the nodes.
  return tokenize(hunks, { enhancers, highlight: true, language: '', refractor: { highlight } as never });
}

/** Tokens without highlighting, and the texts to highlight. */
function plainTokens(hunks: Hunk[]): { tokens: HunkTokens; texts: string[] } {
  const texts: string[] = [];
  const tokens = tokenizeHunks(hunks, (text) => {
    texts.push(text);
    return [{ type: 'text', value: text }];
  });
  return { tokens, texts };
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
