/** Incremental search in growing output: lines are searched once, and again only if they were incomplete. */
import { bounds } from '../../../transcript/bounds.ts';
import { type Found, findLines } from '../../../transcript/find.ts';
import type { Lines } from '../../../transcript/lines.ts';
import type { Span } from '../../../transcript/spans.ts';

export interface FindQuery {
  readonly text: string;
  readonly regex: boolean;
  /** Case-sensitive. */
  readonly exact: boolean;
}

export class Finder {
  readonly #lines: Lines;
  readonly #query: FindQuery;
  #found: number[] = [];
  #last_searched = 0;
  /** Lines that were incomplete when they were searched. */
  readonly #open = new Set<number>();

  constructor(lines: Lines, query: FindQuery) {
    this.#lines = lines;
    this.#query = query;
  }

  update(): Found {
    const { first, last } = this.#lines;
    const open = [...this.#open].filter((n) => n >= first);
    this.#open.clear();
    const remaining = this.#found.filter((n) => n >= first && !open.includes(n));
    const again = open.flatMap((n) => this.#search(n, n).lines);
    const { lines, error } = this.#search(this.#last_searched + 1, last);
    this.#found =
      again.length > 0
        ? [...remaining, ...again].sort((a, b) => a - b).concat(lines)
        : remaining.concat(lines);
    this.#last_searched = last;
    return { lines: this.#found, error };
  }

  #search(from: number, to: number): Found {
    for (let n = Math.max(from, this.#lines.first); n <= to; n++) {
      if (this.#lines.at(n)?.open) this.#open.add(n);
    }
    const { text, regex, exact } = this.#query;
    return findLines(this.#lines, text, { regex, case: exact, from, to });
  }
}

/** The next or previous match from a line; it wraps around at the ends. */
export function step(found: readonly number[], n: number, direction: 1 | -1): number | null {
  const at = direction === 1 ? found.find((each) => each > n) : found.findLast((each) => each < n);
  return at ?? (direction === 1 ? found[0] : found.at(-1)) ?? null;
}

/** The ranges [from, to) of the matches in a text, up to a limit. */
export function findMatches(text: string, pattern: RegExp): [number, number][] {
  const all: [number, number][] = [];
  for (const match of text.matchAll(new RegExp(pattern, `${pattern.flags}g`))) {
    if (match[0] !== '') all.push([match.index, match.index + match[0].length]);
    if (all.length >= bounds.matches) break;
  }
  return all;
}

export interface Piece {
  readonly span: Span;
  readonly text: string;
  readonly hit: boolean;
}

/** Splits the spans of a line at the matches; a match may cover several spans. */
export function splitPieces(spans: readonly Span[], pattern: RegExp): Piece[] {
  const matches = findMatches(spans.map(({ text }) => text).join(''), pattern);
  const cuts = matches.flat();
  const pieces: Piece[] = [];
  let begin = 0;
  for (const span of spans) {
    const end = begin + span.text.length;
    const edges = [begin, ...cuts.filter((cut) => cut > begin && cut < end), end];
    for (const [at, from] of edges.slice(0, -1).entries()) {
      const hit = matches.some(([first, last]) => from >= first && from < last);
      pieces.push({ span, text: span.text.slice(from - begin, edges[at + 1]! - begin), hit });
    }
    begin = end;
  }
  return pieces;
}
