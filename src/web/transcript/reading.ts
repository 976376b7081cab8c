/** Reads what an agent said, which may have any form: whatever is not as expected is not there, and nothing throws. */
import { bounds } from './bounds.ts';

export type Fields = Record<string, unknown>;

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

/** The first of them that a page holds. */
export function recordsOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.slice(0, bounds.parts).filter(isRecord) : [];
}

export function stringOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** JSON can say numbers that it cannot hold: those are none. */
export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** A title, a name: a short text; null where there is none. */
export function wordOf(value: unknown): string | null {
  return typeof value === 'string' ? headOf(value, bounds.word_chars) : null;
}

/** The first characters of a text, without half of one at the end. */
export function headOf(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  const is_half = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, is_half ? chars - 1 : chars);
}

/** Any JSON, to be shown folded. */
export interface Raw {
  /** The value itself; of one that is too large, the first characters of its JSON. */
  value: unknown;
  cut: boolean;
  /** Characters that it holds. */
  chars: number;
}

export function rawOf(value: unknown, max: number = bounds.text_chars): Raw {
  const chars = weigh(value, max);
  if (chars <= max) return { value, cut: false, chars };
  return { value: headOf(jsonOf(value), max), cut: true, chars: max };
}

/** As people read it. */
export function rawText({ value, cut }: Raw): string {
  return cut ? String(value) : jsonOf(value, 2);
}

/** About as many characters as its JSON has; counts no further than a little over `max`. */
export function weigh(value: unknown, max: number): number {
  let chars = 0;
  // Not by recursion: JSON may nest as deep as it is long.
  const left = [value];
  while (left.length > 0 && chars <= max) {
    const next = left.pop();
    if (typeof next === 'string') chars += next.length + 2;
    else if (typeof next !== 'object' || next === null) chars += 8;
    else {
      for (const [key, inner] of Object.entries(next)) {
        chars += key.length + 4;
        left.push(inner);
      }
    }
  }
  return chars;
}

/** Empty for what nests too deep to be written. */
function jsonOf(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent) ?? '';
  } catch {
    return '';
  }
}

/** The text of an output event; bytes that are no text are shown as far as they are. */
export function outputText({ data, encoding }: Fields): { text: string; binary: boolean } {
  const text = stringOf(data) ?? '';
  if (encoding !== 'base64') return { text, binary: false };
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    return { text: new TextDecoder().decode(bytes), binary: true };
  } catch {
    return { text, binary: true };
  }
}
