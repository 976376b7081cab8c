/** Finds text in the output of an agent. */
import { plainText } from './ansi.ts';
import type { Lines } from './lines.ts';

export interface FindOptions {
  regex?: boolean;
  /** Match upper and lower case exactly. */
  case?: boolean;
  /** The first line to search. */
  from?: number;
  /** The last line to search. */
  to?: number;
}

export interface Found {
  /** The numbers of the lines. */
  lines: number[];
  /** Why the query is not valid; null if it is. */
  error: string | null;
}

/** The lines that contain the text as it is shown, without colors. */
export function findLines(lines: Lines, query: string, options: FindOptions = {}): Found {
  const found: number[] = [];
  if (query === '') return { lines: found, error: null };
  const { pattern, error } = toPattern(query, options);
  if (!pattern) return { lines: found, error };
  const end = Math.min(options.to ?? lines.last, lines.last);
  for (let n = Math.max(options.from ?? 1, lines.first); n <= end; n++) {
    const { raw, is_plain } = lines.at(n)!;
    if (pattern.test(is_plain ? raw : plainText(raw))) found.push(n);
  }
  return { lines: found, error: null };
}

/** The pattern of a query, or why it is not valid. */
export function toPattern(
  query: string,
  { regex = false, case: exact = false }: FindOptions,
): { pattern: RegExp | null; error: string | null } {
  const source = regex ? query : query.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  try {
    return { pattern: new RegExp(source, exact ? '' : 'i'), error: null };
  } catch (error) {
    return { pattern: null, error: error instanceof Error ? error.message : String(error) };
  }
}
