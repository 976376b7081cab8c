/** Splits a long text that grows into chunks, of which only the last one changes, so that a page renders only that one again. */

const CHUNK_CHARS = 2_000;
/** How far before the end of a chunk a better place to split is searched. */
const SEARCH_CHARS = 400;

/** `between`: where a chunk may end. Texts without such a place are split anywhere between words, and between lines not at all. */
export function splitText(text: string, between: 'words' | 'lines'): string[] {
  const chunks: string[] = [];
  let from = 0;
  while (text.length - from > CHUNK_CHARS) {
    const end = between === 'lines' ? lineEnd(text, from + CHUNK_CHARS) : wordEnd(text, from + CHUNK_CHARS);
    if (end === null) break;
    chunks.push(text.slice(from, end));
    from = end;
  }
  chunks.push(text.slice(from));
  return chunks;
}

function wordEnd(text: string, limit: number): number {
  for (let at = limit; at > limit - SEARCH_CHARS; at--) {
    if (/\s/.test(text[at - 1]!)) return at;
  }
  // Not between the two halves of a character.
  return /[\uD800-\uDBFF]/.test(text[limit - 1]!) ? limit - 1 : limit;
}

function lineEnd(text: string, limit: number): number | null {
  const at = text.indexOf('\n', limit - 1);
  return at === -1 || at === text.length - 1 ? null : at + 1;
}
