/**
 * The output of an agent as numbered lines. Keeps the newest lines, in chunks, exactly as they were printed.
 */
import { outputText } from '../../acp/transcript/output.ts';
import type { EventRecord, StreamName } from '../../core/event.ts';
import { colorsAfter } from './ansi.ts';
import { bounds } from './bounds.ts';
import { isPlainText } from './escape.ts';

export interface Line {
  /** Counts from 1. */
  readonly n: number;
  /** The number of the event in which it begins. */
  readonly seq: number;
  /** Unix seconds. */
  readonly ts: number;
  readonly stream: StreamName;
  /** Without its newline. */
  readonly raw: string;
  /** It has not ended yet. */
  readonly open: boolean;
  /** It continues in the next line of its stream, because it is too long for one. */
  readonly unbroken: boolean;
  /** Some of its bytes are not text. */
  readonly binary: boolean;
  /** The colors that are on at its start. */
  readonly carry: string;
  /** It contains only text and tabs. */
  readonly is_plain: boolean;
}

const CHUNK = 1024;

export class Lines {
  #chunks: Line[][] = [];
  /** The number of characters in each chunk. */
  #chars: number[] = [];
  #all_chars = 0;
  /** The number of dropped lines; whole chunks are dropped. */
  #dropped = 0;
  #count = 0;
  #version = 0;
  #session_id: string | null = null;
  readonly #streams = new Map<StreamName, { open: number | null; colors: string }>();

  /** Changes with every line. */
  get version(): number {
    return this.#version;
  }

  /** The number of the oldest line that is kept. */
  get first(): number {
    return this.#dropped + 1;
  }

  /** The number of the newest line; 0 before there is any. */
  get last(): number {
    return this.#count;
  }

  /** Ignores events that are not output. */
  add(events: readonly EventRecord[]): void {
    for (const event of events) this.#add(event);
  }

  at(n: number): Line | undefined {
    const index = n - 1 - this.#dropped;
    return index < 0 ? undefined : this.#chunks[Math.floor(index / CHUNK)]?.[index % CHUNK];
  }

  /** The text of lines, exactly as printed. Both numbers are inclusive. */
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

  /** Another process starts on a new line, and in the default colors. */
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
          is_plain: before.is_plain && isPlainText(fits),
        }
      : {
          n: this.#count + 1,
          seq: event.seq,
          ts: event.ts,
          stream,
          raw: fits,
          ...about,
          binary: how.binary,
          carry: state.colors,
          is_plain: isPlainText(fits),
        };
    if (before) this.#replace(line);
    else this.#push(line);
    state.open = line.open ? line.n : null;
    if (!line.open && !line.is_plain) state.colors = colorsAfter(line.carry, line.raw);
    if (unbroken) this.#write(event, stream, text.slice(fits.length), how);
  }

  #stream(name: StreamName): { open: number | null; colors: string } {
    const known = this.#streams.get(name);
    if (known) return known;
    const state = { open: null, colors: '' };
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
