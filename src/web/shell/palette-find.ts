/** The search of the command palette. Pure, and fast with thousands of agents. */

export interface Findable {
  label: string;
  /** More text to search, such as an id or a kind. */
  also?: string;
  /** Not listed before the user searches. */
  only_searched?: boolean;
}

/** The best `max` matches; equal ones keep their order. Every word must match. */
export function find<T extends Findable>(items: readonly T[], query: string, max: number): T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items.filter(({ only_searched }) => !only_searched).slice(0, max);
  const found: { thing: T; rank: number }[] = [];
  for (const item of items) {
    const rank = matchRank(item, words);
    if (rank !== null) found.push({ thing: item, rank });
  }
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, max)
    .map(({ thing: item }) => item);
}

/** Lower is better: a match at the beginning, at a word boundary, elsewhere in the label, in the other text. */
function matchRank({ label, also = '' }: Findable, words: readonly string[]): number | null {
  const text = label.toLowerCase();
  let rank = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at === 0) continue;
    if (at > 0) rank += /[a-z0-9]/.test(text[at - 1]!) ? 2 : 1;
    else if (also.toLowerCase().includes(word)) rank += 3;
    else return null;
  }
  return rank;
}
