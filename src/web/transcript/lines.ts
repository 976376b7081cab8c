/**
 * The output of an agent as numbered lines: the newest of them, cheap to add to, exact to copy. What a line looks like is
 * worked out for those that are shown.
 */
import type { EventRecord, StreamName } from '../../domain/event.ts';
import { coloursAfter, plainText, type Span, spansOf } from './ansi.ts';
import { bounds } from './bounds.ts';
import { isDull } from './inert.ts';
import { outputText } from './reading.ts';

export interface Line {
  /** From 1. */
  readonly n: number;
  /** Of the event in which it begins. */
  readonly seq: number;
  /** Unix seconds. */
  readonly ts: number;
  readonly stream: StreamName;
  /** Without its newline. */
  readonly raw: string;
  /** It goes on. */
  readonly open: boolean;
  /** It goes on in the next line of its stream: there was no newline. */
  readonly unbroken: boolean;
  /** Some of its bytes are no text. */
  readonly binary: boolean;
  /** Colours that were on before it. */
  readonly carry: string;
  /** It holds nothing but text. */
  readonly dull: boolean;
}

export interface Query {
  regex?: boolean;
  /** Upper and lower case differ. */
  case?: boolean;
  /** Where to begin, for what came later. */
  from?: number;
  /** The last line to look at. */
  to?: number;
}

export interface Found {
  /** Numbers of lines. */
  lines: number[];
  /** Why nothing was looked for. */
  error: string | null;
}

const CHUNK = 1024;

export class Lines {
  #chunks: Line[][] = [];
  /** Of each chunk. */
  #chars: number[] = [];
  #all_chars = 0;
  /** Lines that were dropped; whole chunks. */
  #dropped = 0;
  #count = 0;
  #version = 0;
  #session_id: string | null = null;
  readonly #streams = new Map<StreamName, { open: number | null; colours: string }>();

  /** Changes with every line. */
  get version(): number {
    return this.#version;
  }

  /** The number of the oldest line that is here. */
  get first(): number {
    return this.#dropped + 1;
  }

  /** The number of the newest line; 0 before there is any. */
  get last(): number {
    return this.#count;
  }

  /** What is no `output` is passed over. */
  add(events: readonly EventRecord[]): void {
    for (const event of events) this.#add(event);
  }

  at(n: number): Line | undefined {
    const index = n - 1 - this.#dropped;
    return index < 0 ? undefined : this.#chunks[Math.floor(index / CHUNK)]?.[index % CHUNK];
  }

  spans(n: number): Span[] {
    const line = this.at(n);
    return line ? spansOf(line.raw, line.carry) : [];
  }

  /** Lines from one number to another, both included, exactly as they were printed. */
  copy(from: number, to: number): string {
    const end = Math.min(to, this.last);
    let text = '';
    for (let n = Math.max(from, this.first); n <= end; n++) {
      const line = this.at(n)!;
      text += line.raw;
      if (n < end && !line.unbroken) text += '\n';
    }
    return text;
  }

  /** The lines that show what is looked for; colours do not come between letters. */
  find(query: string, options: Query = {}): Found {
    const lines: number[] = [];
    if (query === '') return { lines, error: null };
    const { pattern, error } = patternOf(query, options);
    if (!pattern) return { lines, error };
    const end = Math.min(options.to ?? this.last, this.last);
    for (let n = Math.max(options.from ?? 1, this.first); n <= end; n++) {
      const { raw, dull } = this.at(n)!;
      if (pattern.test(dull ? raw : plainText(raw))) lines.push(n);
    }
    return { lines, error: null };
  }

  #add(event: EventRecord): void {
    const { type, session_id, stream } = event;
    if (type !== 'output' || (stream !== 'stdout' && stream !== 'stderr')) return;
    if (session_id !== this.#session_id) this.#begin(session_id);
    const { text, binary } = outputText(event);
    if (text === '') return;
    this.#version++;
    const ends = text.endsWith('\n');
    const parts = (ends ? text.slice(0, -1) : text).split('\n');
    for (const [at, part] of parts.entries()) {
      const open = at === parts.length - 1 && !ends && event.partial === true;
      this.#write(event, stream, part, { open, binary });
    }
  }

  /** Another process: it begins on a line of its own, and in the usual colours. */
  #begin(session_id: string | null): void {
    this.#session_id = session_id;
    for (const { open } of this.#streams.values()) {
      const line = open === null ? undefined : this.at(open);
      if (line) this.#replace({ ...line, open: false });
    }
    this.#streams.clear();
  }

  #write(
    event: EventRecord,
    stream: StreamName,
    text: string,
    how: { open: boolean; binary: boolean },
  ): void {
    const state = this.#stream(stream);
    const before = state.open === null ? undefined : this.at(state.open);
    const room = bounds.line_chars - (before?.raw.length ?? 0);
    const fits = text.length <= room ? text : text.slice(0, room);
    const unbroken = fits.length < text.length;
    const about = { open: how.open && !unbroken, unbroken };
    const line: Line = before
      ? {
          ...before,
          ...about,
          raw: before.raw + fits,
          binary: before.binary || how.binary,
          dull: before.dull && isDull(fits),
        }
      : {
          n: this.#count + 1,
          seq: event.seq,
          ts: event.ts,
          stream,
          raw: fits,
          ...about,
          binary: how.binary,
          carry: state.colours,
          dull: isDull(fits),
        };
    if (before) this.#replace(line);
    else this.#push(line);
    state.open = line.open ? line.n : null;
    if (!line.open && !line.dull) state.colours = coloursAfter(line.carry, line.raw);
    if (unbroken) this.#write(event, stream, text.slice(fits.length), how);
  }

  #stream(name: StreamName): { open: number | null; colours: string } {
    const known = this.#streams.get(name);
    if (known) return known;
    const state = { open: null, colours: '' };
    this.#streams.set(name, state);
    return state;
  }

  #push(line: Line): void {
    if (this.#chunks.length === 0 || this.#chunks.at(-1)!.length === CHUNK) {
      this.#chunks.push([]);
      this.#chars.push(0);
    }
    this.#chunks.at(-1)!.push(line);
    this.#chars[this.#chars.length - 1]! += line.raw.length;
    this.#all_chars += line.raw.length;
    this.#count++;
    this.#trim();
  }

  #replace(line: Line): void {
    const index = line.n - 1 - this.#dropped;
    const at = Math.floor(index / CHUNK);
    const chunk = this.#chunks[at]!;
    const grown = line.raw.length - chunk[index % CHUNK]!.raw.length;
    chunk[index % CHUNK] = line;
    this.#chars[at]! += grown;
    this.#all_chars += grown;
  }

  #trim(): void {
    while (
      this.#chunks.length > 1 &&
      (this.#count - this.#dropped > bounds.lines || this.#all_chars > bounds.lines_chars)
    ) {
      this.#all_chars -= this.#chars.shift()!;
      this.#dropped += this.#chunks.shift()!.length;
    }
  }
}

/** What a query looks for, or why it cannot be understood. */
export function patternOf(
  query: string,
  { regex = false, case: exact = false }: Query,
): { pattern: RegExp | null; error: string | null } {
  const source = regex ? query : query.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  try {
    return { pattern: new RegExp(source, exact ? '' : 'i'), error: null };
  } catch (error) {
    return { pattern: null, error: error instanceof Error ? error.message : String(error) };
  }
}
