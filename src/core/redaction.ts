/**
 * Redacts the values of secrets in an agent's output (pure): each becomes `[redacted:NAME]`, even if it spans two reads. The
 * first match wins, and among matches with the same start, the longest. Whitespace around a value is ignored. Values shorter
 * than `redact_bytes_min` bytes are not redacted, because they would match ordinary text. A value also matches if it is
 * escaped in a JSON string, or interrupted by terminal escape sequences of at most `redact_sequences_bytes_max` bytes in
 * total; these sequences are kept, before the mark.
 */

import { keptText } from '../base/kept-bytes.ts';
import { type Unescaped, unescaped, withoutEscapes } from './escapes.ts';
import { limits } from './limits.ts';

export interface Secret {
  name: string;
  value: string;
}

interface Pattern {
  bytes: Buffer;
  mark: Buffer;
}

/** A mark and the sequences before it, and their place in the output. The replaced text was `more` bytes longer. */
interface Edit {
  out_from: number;
  out_end: number;
  more: number;
}

/** The result of redacting some bytes. */
export interface Redacted {
  bytes: Uint8Array;
  /** How many bytes at the end are held back and not in `bytes`, because a secret may begin in them. */
  held: number;
  /** How many input bytes the first `count` output bytes represent. A mark counts when it is complete. */
  sourceBytes(count: number): number;
  /** `count`, or if a split after as many output bytes would divide a mark and the sequences before it, the mark's end. */
  markEnd(count: number): number;
}

export interface RedactOptions {
  /** How many of the first input bytes an earlier output already contained. They may be the beginning of a secret. */
  shown?: number;
  /** The stream ends here, so nothing is held back. */
  last: boolean;
}

/** Longer windows would not allow notably longer strides. */
const WINDOW_MAX = 32;
const BLOCKS = 4096;

export class Redactor {
  readonly #secrets: readonly Secret[];
  #search: Search | null = null;

  private constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets;
  }

  /** Null if there is nothing to redact. */
  static of(secrets: readonly Secret[]): Redactor | null {
    const known = new Map<string, string>();
    for (const { name, value } of secrets) {
      const bare = withoutEscapes(value).trim();
      if (Buffer.byteLength(bare) < limits.redact_bytes_min) continue;
      for (const form of [bare, JSON.stringify(bare).slice(1, -1)]) {
        if (!known.has(form)) known.set(form, name);
      }
    }
    return known.size === 0 ? null : new Redactor([...known].map(([value, name]) => ({ name, value })));
  }

  /** Redacts bytes of a stream. The caller must pass held-back bytes again, with what follows them. */
  take(input: Uint8Array, { shown = 0, last }: RedactOptions): Redacted {
    const data = asBuffer(input);
    const source = new Source(data, this.#getSearch(), last);
    const parts: Buffer[] = [];
    const edits: Edit[] = [];
    let out = 0;
    const add = (part: Buffer) => {
      parts.push(part);
      out += part.length;
    };
    let copied = shown;
    let incomplete_from = source.firstIncomplete(0);
    for (let found = source.find(0); found; found = source.find(found.end)) {
      // A match that begins earlier, or one that begins at the same position and is longer, is still possible.
      if (incomplete_from <= found.at) break;
      if (found.at > copied) add(data.subarray(copied, found.at));
      const out_from = out;
      // Sequences are added before the mark, because the end of a sequence could form a secret with the text that follows.
      for (const sequence of source.sequences(found.at, found.end)) add(sequence);
      add(found.mark);
      edits.push({ out_from, out_end: out, more: found.end - Math.max(found.at, shown) - (out - out_from) });
      copied = found.end;
      if (incomplete_from < found.end) incomplete_from = source.firstIncomplete(found.end);
    }
    if (incomplete_from > copied) add(data.subarray(copied, incomplete_from));
    return {
      bytes:
        edits.length === 0
          ? data.subarray(shown, Math.max(incomplete_from, shown))
          : Buffer.concat(parts, out),
      held: data.length - incomplete_from,
      sourceBytes: (count) =>
        edits.reduce((sum, { out_end, more }) => (out_end <= count ? sum + more : sum), count),
      markEnd: (count) =>
        edits.find(({ out_from, out_end }) => out_from < count && count < out_end)?.out_end ?? count,
    };
  }

  /** Whether the beginning of a secret is so short that it may be shown if nothing follows. */
  isHarmless(beginning: Uint8Array): boolean {
    return this.#getSearch().isHarmless(asBuffer(beginning));
  }

  /** How many bytes at the end may have been shown as a harmless beginning of a secret. */
  shownAtEnd(bytes: Uint8Array): number {
    const data = asBuffer(bytes);
    const search = this.#getSearch();
    for (let count = Math.min(limits.redact_shown_bytes_max, data.length); count > 0; count--) {
      const end = data.subarray(data.length - count);
      if (search.begins(end, 0) && search.isHarmless(end)) return count;
    }
    return 0;
  }

  /** Redacts a complete text, which is returned unchanged if it contains no secret. */
  text(text: string): string {
    const bare = withoutEscapes(text);
    if (!this.#secrets.some(({ value }) => text.includes(value) || bare.includes(value))) return text;
    return Buffer.from(this.take(Buffer.from(text), { last: true }).bytes).toString();
  }

  /** Redacts the strings of valid JSON, however they are escaped. Everything else stays as it is, byte for byte. */
  json(json: string): string {
    const escaped = json.includes('\\');
    if (!escaped && !this.#secrets.some(({ value }) => json.includes(value))) return json;
    let result = '';
    let copied = 0;
    for (let from = json.indexOf('"'); from >= 0; ) {
      const to = stringEnd(json, from);
      const literal = json.slice(from, to);
      const plain = literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
      const rest = this.text(plain);
      if (rest !== plain) {
        result += json.slice(copied, from) + JSON.stringify(rest);
        copied = to;
      }
      from = json.indexOf('"', to);
    }
    return copied === 0 ? json : result + json.slice(copied);
  }

  /** The search is built on first use, because most agents are idle most of the time. */
  #getSearch(): Search {
    this.#search ??= new Search(
      this.#secrets.map(({ name, value }) => ({
        bytes: keptText(value),
        mark: keptText(`[redacted:${name}]`),
      })),
    );
    return this.#search;
  }
}

interface Found {
  at: number;
  end: number;
  mark: Buffer;
}

const NOT_SEARCHED: Found = { at: -1, end: -1, mark: Buffer.alloc(0) };

/**
 * Bytes of a stream, searched both unchanged and without escape sequences, because sequences may interrupt a secret, and the
 * end of a sequence may be the beginning of a secret. Positions refer to the unchanged bytes.
 */
class Source {
  readonly #data: Buffer;
  readonly #bare: Unescaped | null;
  readonly #search: Search;
  readonly #last: boolean;
  /** The matches found last, which stay valid until `find` passes them. Otherwise, many of one kind would take quadratic time. */
  #whole: Found | null = NOT_SEARCHED;
  #interrupted: Found | null = NOT_SEARCHED;

  constructor(data: Buffer, search: Search, last: boolean) {
    this.#data = data;
    this.#bare = unescaped(data, last);
    this.#search = search;
    this.#last = last;
  }

  /**
   * The first secret at or after a position; of those that begin at the same position, the longest. Positions of later
   * calls must not be smaller.
   */
  find(from: number): Found | null {
    const bare = this.#bare;
    let whole = this.#whole;
    if (whole && whole.at < from) whole = this.#findWhole(from);
    this.#whole = whole;
    if (bare === null) return whole;
    let interrupted = this.#interrupted;
    if (interrupted && interrupted.at < from) interrupted = this.#findInterrupted(bare, bare.index(from));
    this.#interrupted = interrupted;
    if (whole === null || interrupted === null) return whole ?? interrupted;
    if (whole.at !== interrupted.at) return whole.at < interrupted.at ? whole : interrupted;
    return whole.end > interrupted.end ? whole : interrupted;
  }

  #findWhole(from: number): Found | null {
    const found = this.#search.find(this.#data, from);
    return found && { at: found.at, end: found.at + found.bytes.length, mark: found.mark };
  }

  #findInterrupted(bare: Unescaped, from: number): Found | null {
    const placeOf = (at: number, length: number) => ({
      at: bare.origin(at),
      end: bare.origin(at + length - 1) + 1,
    });
    const fits = (start: number, { bytes: { length } }: Pattern) => {
      const { at, end } = placeOf(start, length);
      return end - at - length <= limits.redact_sequences_bytes_max;
    };
    const found = this.#search.find(bare.bytes, from, fits);
    return found && { ...placeOf(found.at, found.bytes.length), mark: found.mark };
  }

  /** The first position at or after `from` where a secret or a sequence is incomplete; the end if all are complete. */
  firstIncomplete(from: number): number {
    const { length } = this.#data;
    if (this.#last) return length;
    const whole = this.#search.firstIncomplete(this.#data, from);
    const bare = this.#bare;
    if (bare === null) return whole;
    const index = this.#search.firstIncomplete(
      bare.bytes,
      bare.index(Math.max(from, length - this.#search.longest - limits.redact_sequences_bytes_max)),
    );
    const interrupted = index < bare.bytes.length ? bare.origin(index) : bare.end;
    // A sequence is never split, because its end would be mistaken for text.
    return Math.max(from, Math.min(whole < length ? bare.outside(whole) : length, interrupted));
  }

  /** Escape sequences that begin between two positions. */
  sequences(from: number, to: number): Buffer[] {
    return this.#bare?.between(from, to) ?? [];
  }
}

/** Multi-pattern search (Wu and Manber, 1994). Its cost hardly depends on the number of patterns. */
class Search {
  /** Patterns, longest first. */
  readonly #patterns: readonly Pattern[];
  /** Length of the longest pattern. */
  readonly longest: number;
  readonly #window: number;
  /** How far the window may move if it ends with two bytes that have this hash. */
  readonly #strides: Uint8Array;
  /** The patterns whose window ends with two bytes of that hash. */
  readonly #ending = new Map<number, Pattern[]>();
  readonly #first = new Uint8Array(256);

  constructor(patterns: Pattern[]) {
    this.#patterns = patterns.toSorted((a, b) => b.bytes.length - a.bytes.length);
    this.longest = this.#patterns[0]!.bytes.length;
    const window = Math.min(this.#patterns.at(-1)!.bytes.length, WINDOW_MAX);
    this.#window = window;
    this.#strides = new Uint8Array(BLOCKS).fill(window - 1);
    for (const pattern of this.#patterns) {
      const { bytes } = pattern;
      this.#first[bytes[0]!] = 1;
      for (let i = 1; i < window; i++) {
        const block = blockOf(bytes[i - 1]!, bytes[i]!);
        this.#strides[block] = Math.min(this.#strides[block]!, window - 1 - i);
      }
      const last = blockOf(bytes[window - 2]!, bytes[window - 1]!);
      this.#ending.set(last, [...(this.#ending.get(last) ?? []), pattern]);
    }
  }

  /** `accepts`: whether a pattern that begins at a position counts. */
  find(
    data: Buffer,
    from: number,
    accepts: (at: number, pattern: Pattern) => boolean = () => true,
  ): (Pattern & { at: number }) | null {
    const strides = this.#strides;
    const end = data.length;
    for (let at = from + this.#window - 1; at < end; ) {
      const block = blockOf(data[at - 1]!, data[at]!);
      const stride = strides[block]!;
      if (stride > 0) {
        at += stride;
        continue;
      }
      const start = at - this.#window + 1;
      for (const pattern of this.#ending.get(block) ?? []) {
        const { bytes } = pattern;
        const is_found = bytes.length <= end - start && isSameRange(bytes, data, start, bytes.length);
        if (is_found && accepts(start, pattern)) {
          return { ...pattern, at: start };
        }
      }
      at++;
    }
    return null;
  }

  /** The first position at or after `from` where an incomplete pattern begins; the end if there is none. */
  firstIncomplete(data: Buffer, from: number): number {
    const end = data.length;
    for (let at = Math.max(from, end - this.longest + 1); at < end; at++) {
      if (this.#first[data[at]!] === 1 && this.begins(data, at)) return at;
    }
    return end;
  }

  /** Whether the bytes from `at` to the end are a proper prefix of a pattern. */
  begins(data: Buffer, at: number): boolean {
    const length = data.length - at;
    return this.#patterns.some(({ bytes }) => bytes.length > length && isSameRange(bytes, data, at, length));
  }

  isHarmless(beginning: Buffer): boolean {
    const { length } = beginning;
    if (length > limits.redact_shown_bytes_max) return false;
    return this.#patterns.every(
      ({ bytes }) => 2 * length <= bytes.length || !isSameRange(bytes, beginning, 0, length),
    );
  }
}

function blockOf(one: number, next: number): number {
  return ((one << 4) ^ next) & (BLOCKS - 1);
}

/** Whether the first `length` bytes of a pattern are at `at`. */
function isSameRange(pattern: Buffer, data: Buffer, at: number, length: number): boolean {
  if (data[at] !== pattern[0] || (length > 1 && data[at + 1] !== pattern[1])) return false;
  return data.compare(pattern, 0, length, at, at + length) === 0;
}

/** The index after the closing quote of the JSON string that begins at `from`. */
function stringEnd(json: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const quote = json.indexOf('"', at);
    if (quote < 0) return json.length;
    let first = quote;
    while (json[first - 1] === '\\') first--;
    if ((quote - first) % 2 === 0) return quote + 1;
    at = quote;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
