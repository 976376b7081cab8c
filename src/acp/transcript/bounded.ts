/**
 * Limits an agent's values to what a transcript keeps: short texts, the first entries of a list, JSON up to a size. Never
 * throws.
 */
import { asRecords, type Fields, truncateText } from '../json.ts';
import { bounds } from './bounds.ts';

/** A title or a name, shortened. */
export function shortText(text: string): string {
  return truncateText(text, bounds.title_chars);
}

export function shortOrNull(value: unknown): string | null {
  return typeof value === 'string' ? shortText(value) : null;
}

/** A record of texts, each of them shortened. */
export function shortTexts<T extends { [K in keyof T]: string | null }>(record: T): T {
  return Object.fromEntries(Object.entries(record).map(([key, text]) => [key, shortOrNull(text)])) as T;
}

/** The first records in a list. */
export function takeRecords(value: unknown): Fields[] {
  return Array.isArray(value) ? asRecords(value.slice(0, bounds.parts)) : [];
}

/** Any JSON, shown collapsed. */
export interface Raw {
  /** The value itself, or the first characters of its JSON if it is too large. */
  value: unknown;
  truncated: boolean;
  /** The number of characters in it. */
  chars: number;
}

export function toRaw(value: unknown, max: number = bounds.text_chars): Raw {
  const chars = jsonLength(value, max);
  if (chars <= max) return { value, truncated: false, chars };
  return { value: truncateText(formatJson(value), max), truncated: true, chars: max };
}

/** The value as text for people. */
export function formatRaw({ value, truncated }: Pick<Raw, 'value' | 'truncated'>): string {
  return truncated ? String(value) : formatJson(value, 2);
}

/** The approximate length of its JSON in characters. Stops counting soon after `max`. */
export function jsonLength(value: unknown, max: number): number {
  let chars = 0;
  // Not recursive, because JSON may be nested as deep as it is long.
  const stack = [value];
  while (stack.length > 0 && chars <= max) {
    const next = stack.pop();
    if (typeof next === 'string') chars += next.length + 2;
    else if (typeof next !== 'object' || next === null) chars += 8;
    else {
      for (const [key, inner] of Object.entries(next)) {
        chars += key.length + 4;
        stack.push(inner);
      }
    }
  }
  return chars;
}

/** Empty for a value that is nested too deeply to be serialized. */
function formatJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent) ?? '';
  } catch {
    return '';
  }
}
