/**
 * Takes the values of secrets out of what an agent says (pure): each is replaced by `[redacted:NAME]` wherever it stands,
 * also where two reads meet in the middle of one. The first one counts, of those that begin at the same place the longest.
 * Space around a value is no part of it, and one of less than `redact_bytes_min` bytes is left alone: it would eat text.
 * A value is also known as it stands within a JSON string, and where escape sequences of terminals interrupt it; those stay,
 * in front of the mark.
 */
import { limits } from '../base/limits.ts';
import { type Unescaped, unescaped, withoutEscapes } from './escapes.ts';

export interface Secret {
  name: string;
  value: string;
}

interface Pattern {
  bytes: Buffer;
  mark: Buffer;
}

/** A mark and the sequences from its secret end at `out_end` and replace `more` bytes than they have themselves. */
interface Edit {
  out_end: number;
  more: number;
}

/** What came of some bytes. */
export interface Redacted {
  bytes: Uint8Array;
  /** Bytes at the end that are in no match and not in `bytes`: a secret may have begun in them. */
  held: number;
  /** How many of the given bytes the first `count` of `bytes` stand for; a mark counts when it is whole. */
  given(count: number): number;
}

export interface RedactOptions {
  /** That many bytes before what was given are in `bytes` of before already, and may be the beginning of a secret. */
  shown?: number;
  /** Nothing follows: nothing is held back. */
  last: boolean;
}

/** Longer windows give no longer strides worth having. */
const WINDOW_MAX = 32;
const BLOCKS = 4096;

export class Redactor {
  readonly #secrets: readonly Secret[];
  #search: Search | null = null;

  private constructor(secrets: readonly Secret[]) {
    this.#secrets = secrets;
  }

  /** Null when there is nothing to take out. */
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

  /** Bytes of a stream; what is held back is to be given again, with what follows. */
  take(given: Uint8Array, { shown = 0, last }: RedactOptions): Redacted {
    const data = asBuffer(given);
    const source = new Source(data, this.#made(), last);
    const parts: Buffer[] = [];
    const edits: Edit[] = [];
    let out = 0;
    const add = (part: Buffer) => {
      parts.push(part);
      out += part.length;
    };
    let copied = shown;
    let open = source.open(0);
    for (let found = source.find(0); found; found = source.find(found.end)) {
      // One that begins before it, or with it and is longer, may still come true.
      if (open <= found.at) break;
      if (found.at > copied) add(data.subarray(copied, found.at));
      const out_from = out;
      // In front of the mark: the end of a sequence could complete a secret with the text that follows.
      for (const sequence of source.sequences(found.at, found.end)) add(sequence);
      add(found.mark);
      edits.push({ out_end: out, more: found.end - Math.max(found.at, shown) - (out - out_from) });
      copied = found.end;
      if (open < found.end) open = source.open(found.end);
    }
    if (open > copied) add(data.subarray(copied, open));
    return {
      bytes: edits.length === 0 ? data.subarray(shown, Math.max(open, shown)) : Buffer.concat(parts, out),
      held: data.length - open,
      given: (count) =>
        edits.reduce((sum, { out_end, more }) => (out_end <= count ? sum + more : sum), count),
    };
  }

  /** Whether so little of a secret has come that it may be seen when nothing follows. */
  isHarmless(beginning: Uint8Array): boolean {
    return this.#made().isHarmless(asBuffer(beginning));
  }

  /** How many bytes at the end may have been shown as a harmless beginning of a secret. */
  shownAtEnd(bytes: Uint8Array): number {
    const data = asBuffer(bytes);
    const search = this.#made();
    for (let count = Math.min(limits.redact_shown_bytes_max, data.length); count > 0; count--) {
      const end = data.subarray(data.length - count);
      if (search.begins(end, 0) && search.isHarmless(end)) return count;
    }
    return 0;
  }

  text(text: string): string {
    const bare = withoutEscapes(text);
    if (!this.#secrets.some(({ value }) => text.includes(value) || bare.includes(value))) return text;
    return Buffer.from(this.take(Buffer.from(text), { last: true }).bytes).toString();
  }

  /** Valid JSON, in which no string tells a secret, however it escapes it; everything else is as it was, byte for byte. */
  json(json: string): string {
    const escaped = json.includes('\\');
    if (!escaped && !this.#secrets.some(({ value }) => json.includes(value))) return json;
    let result = '';
    let copied = 0;
    for (let from = json.indexOf('"'); from >= 0; ) {
      const to = stringEnd(json, from);
      const literal = json.slice(from, to);
      const told = literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
      const rest = this.text(told);
      if (rest !== told) {
        result += json.slice(copied, from) + JSON.stringify(rest);
        copied = to;
      }
      from = json.indexOf('"', to);
    }
    return copied === 0 ? json : result + json.slice(copied);
  }

  /** Made when first needed: most agents are silent most of the time. */
  #made(): Search {
    this.#search ??= new Search(
      this.#secrets.map(({ name, value }) => ({
        bytes: Buffer.from(value),
        mark: Buffer.from(`[redacted:${name}]`),
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

/**
 * Bytes of a stream, searched as they are and without the escape sequences in them: a secret may be interrupted by some,
 * and the end of a sequence may be the beginning of a secret. Places are those of the bytes as they are.
 */
class Source {
  readonly #data: Buffer;
  readonly #bare: Unescaped | null;
  readonly #search: Search;
  readonly #last: boolean;

  constructor(data: Buffer, search: Search, last: boolean) {
    this.#data = data;
    this.#bare = unescaped(data, last);
    this.#search = search;
    this.#last = last;
  }

  /** The first secret from a place on, of those that begin there the longest. */
  find(from: number): Found | null {
    const whole = this.#found(this.#search.find(this.#data, from), null);
    const bare = this.#bare;
    if (bare === null) return whole;
    const interrupted = this.#found(this.#search.find(bare.bytes, bare.index(from)), bare);
    if (whole === null || interrupted === null) return whole ?? interrupted;
    if (whole.at !== interrupted.at) return whole.at < interrupted.at ? whole : interrupted;
    return whole.end > interrupted.end ? whole : interrupted;
  }

  #found(found: (Pattern & { at: number }) | null, bare: Unescaped | null): Found | null {
    if (found === null) return null;
    const { at, bytes, mark } = found;
    if (bare === null) return { at, end: at + bytes.length, mark };
    return { at: bare.origin(at), end: bare.origin(at + bytes.length - 1) + 1, mark };
  }

  /** The first place from `from` on where a secret or a sequence is incomplete; the end if all are complete. */
  open(from: number): number {
    const { length } = this.#data;
    if (this.#last) return length;
    const whole = this.#search.open(this.#data, from);
    const bare = this.#bare;
    if (bare === null) return whole;
    const index = this.#search.open(bare.bytes, bare.index(from));
    const interrupted = index < bare.bytes.length ? bare.origin(index) : bare.end;
    // A sequence is never cut in two, or its end would be taken for text.
    return Math.max(from, Math.min(whole < length ? bare.outside(whole) : length, interrupted));
  }

  /** Escape sequences that begin between two places. */
  sequences(from: number, to: number): Buffer[] {
    return this.#bare?.between(from, to) ?? [];
  }
}

/** Finds any of several patterns with strides (Wu and Manber's way): what it costs hardly depends on how many there are. */
class Search {
  /** The longest first. */
  readonly #patterns: readonly Pattern[];
  readonly #longest: number;
  readonly #window: number;
  /** By the hash of two bytes: how far the window may move when it ends with them. */
  readonly #strides: Uint8Array;
  /** Patterns whose window ends with two bytes of that hash. */
  readonly #ending = new Map<number, Pattern[]>();
  readonly #first = new Uint8Array(256);

  constructor(patterns: Pattern[]) {
    this.#patterns = patterns.toSorted((a, b) => b.bytes.length - a.bytes.length);
    this.#longest = this.#patterns[0]!.bytes.length;
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

  find(data: Buffer, from: number): (Pattern & { at: number }) | null {
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
        if (bytes.length <= end - start && same(bytes, data, start, bytes.length)) {
          return { ...pattern, at: start };
        }
      }
      at++;
    }
    return null;
  }

  /** The first place after `from` from which on a pattern has begun and not ended; the end when there is none. */
  open(data: Buffer, from: number): number {
    const end = data.length;
    for (let at = Math.max(from, end - this.#longest + 1); at < end; at++) {
      if (this.#first[data[at]!] === 1 && this.begins(data, at)) return at;
    }
    return end;
  }

  /** Whether a pattern begins with all that is there from `at` on, and is longer. */
  begins(data: Buffer, at: number): boolean {
    const length = data.length - at;
    return this.#patterns.some(({ bytes }) => bytes.length > length && same(bytes, data, at, length));
  }

  isHarmless(beginning: Buffer): boolean {
    const { length } = beginning;
    if (length > limits.redact_shown_bytes_max) return false;
    return this.#patterns.every(
      ({ bytes }) => 2 * length <= bytes.length || !same(bytes, beginning, 0, length),
    );
  }
}

function blockOf(one: number, next: number): number {
  return ((one << 4) ^ next) & (BLOCKS - 1);
}

/** Whether the first `length` bytes of a pattern stand at `at`. */
function same(pattern: Buffer, data: Buffer, at: number, length: number): boolean {
  if (data[at] !== pattern[0] || (length > 1 && data[at + 1] !== pattern[1])) return false;
  return data.compare(pattern, 0, length, at, at + length) === 0;
}

/** Behind the closing quote of the JSON string that begins at `from`. */
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
