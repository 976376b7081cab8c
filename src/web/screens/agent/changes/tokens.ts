/** What differs within the lines of a diff, and what the words of its language are. */
import type { Hunk } from 'gitdiff-parser';
import { useEffect, useMemo, useState } from 'react';
import { type HunkTokens, markEdits, type TokenNode, tokenize } from 'react-diff-view';
import { type Language, languageOf } from './languages.ts';

/** Comparing words within lines is slow. */
const LINES_MAX = 1_000;
/** A grammar that takes longer over what an agent wrote is not waited for. */
const NAMING_MS_MAX = 5_000;

export interface ToName {
  language: Language;
  /** The old and the new lines. */
  texts: string[];
}
/** For each text its nodes: words with their names, and what is between them. */
export type Named = TokenNode[][];

/** Null where there are too many lines. `hunks` must stay the same array while they are the same lines. */
export function useTokens(path: string, hunks: Hunk[], lines: number): HunkTokens | null {
  const few = lines <= LINES_MAX;
  const language = languageOf(path);
  const plain = useMemo(() => (few ? plainTokens(hunks) : null), [hunks, few]);
  const [coloured, setColoured] = useState<{ of: HunkTokens; tokens: HunkTokens } | null>(null);
  useEffect(() => {
    if (!plain || language === null) return;
    const { texts, tokens } = plain;
    return name({ language, texts }, (named) => {
      const nodes = new Map(texts.map((text, at) => [text, named[at] ?? []]));
      setColoured({ of: tokens, tokens: tokensOf(hunks, (text) => nodes.get(text) ?? []) });
    });
  }, [hunks, plain, language]);
  if (!plain) return null;
  return coloured?.of === plain.tokens ? coloured.tokens : plain.tokens;
}

function tokensOf(hunks: Hunk[], highlight: (text: string) => TokenNode[]): HunkTokens {
  const enhancers = [markEdits(hunks, { type: 'block' })];
  // The library was made for a `highlight` that answers the nodes alone.
  return tokenize(hunks, { enhancers, highlight: true, language: '', refractor: { highlight } as never });
}

/** Without names, and the texts that want them. */
function plainTokens(hunks: Hunk[]): { tokens: HunkTokens; texts: string[] } {
  const texts: string[] = [];
  const tokens = tokensOf(hunks, (text) => {
    texts.push(text);
    return [{ type: 'text', value: text }];
  });
  return { tokens, texts };
}

/** Answers what ends it. */
function name(what: ToName, onNamed: (named: Named) => void): () => void {
  const worker = new Worker(new URL('./naming.ts', import.meta.url), { type: 'module', name: 'svc-naming' });
  const end = () => {
    clearTimeout(late);
    worker.terminate();
  };
  const late = setTimeout(end, NAMING_MS_MAX);
  worker.onerror = end;
  worker.onmessage = ({ data }: MessageEvent<Named>) => {
    end();
    onNamed(data);
  };
  worker.postMessage(what);
  return end;
}
