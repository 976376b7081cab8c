/**
 * Cuts the stdout of an agent that speaks ACP into frames and what is none (pure). A frame is a whole line, so bytes
 * wait here until their line ends; a line that never seems to end is let go as output, and said to be too long. Secrets are
 * taken out of output here; out of frames whoever shows them takes them, because an agent is answered in its own words.
 */
import { isUtf8 } from 'node:buffer';
import { type Message, readMessage } from '../acp/message.ts';
import { limits } from '../base/limits.ts';
import type { Redactor } from '../domain/redaction.ts';
import { cut } from './framing.ts';

export type Piece =
  /** `text`: one line of JSON; null when it is too large for an event: then its bytes came before it, as output. */
  | { kind: 'frame'; message: Message; text: string | null; size: number }
  | { kind: 'output'; bytes: Uint8Array; partial: boolean }
  | { kind: 'too_large' };

export interface Frames {
  /** What the pieces were made of, beginning where the bytes before ended. */
  bytes: Uint8Array;
  pieces: Piece[];
  /** A line that is too long goes on. */
  spilling: boolean;
}

export interface FrameSizes {
  /** Of a line that is still a frame. */
  frame_bytes_max: number;
  /** Of a frame that is still shown whole. */
  payload_bytes_max: number;
}

const NEWLINE = 0x0a;
const NOTHING = new Uint8Array();
const usual: FrameSizes = {
  frame_bytes_max: limits.acp_frame_bytes_max,
  payload_bytes_max: limits.acp_payload_bytes_max,
};

export class FrameCutter {
  /** Grows by doubling: a line may come in very many pieces. */
  #waiting = NOTHING;
  #waiting_bytes = 0;
  #spilling: boolean;
  readonly #sizes: FrameSizes;
  readonly #redactor: () => Redactor | null;

  constructor(spilling: boolean, redactor: () => Redactor | null, sizes = usual) {
    this.#spilling = spilling;
    this.#redactor = redactor;
    this.#sizes = sizes;
  }

  /** Bytes that were taken and are in no frame yet. */
  get waiting_bytes(): number {
    return this.#waiting_bytes;
  }

  /** Null when everything waits. `last`: the stream is over. The answer may be a view of `chunk`, what waits never is. */
  take(chunk: Uint8Array, { last }: { last: boolean }): Frames | null {
    const ends = last ? chunk.length : chunk.lastIndexOf(NEWLINE) + 1;
    if (ends > 0 || last) return this.#lines(chunk, ends, last);
    const fits = this.#waiting_bytes + chunk.length <= this.#sizes.frame_bytes_max;
    if (fits && !this.#spilling) {
      this.#keep(chunk);
      return null;
    }
    return this.#spill(chunk);
  }

  #lines(chunk: Uint8Array, ends: number, last: boolean): Frames | null {
    const all = this.#with(chunk.subarray(0, ends));
    const { pieces, used } = this.#split(all, last);
    this.#keep(all.subarray(used));
    this.#keep(chunk.subarray(ends));
    if (used === 0) return null;
    this.#spilling = false;
    return { bytes: all.subarray(0, used), pieces, spilling: false };
  }

  #spill(chunk: Uint8Array): Frames | null {
    const all = this.#with(chunk);
    const pieces: Piece[] = this.#spilling ? [] : [{ kind: 'too_large' }];
    const used = this.#plain(all, false, pieces);
    this.#keep(all.subarray(used));
    this.#spilling = true;
    return used === 0 ? null : { bytes: all.subarray(0, used), pieces, spilling: true };
  }

  /** `used`: what follows waits, because it is the beginning of a secret that may go on in the next line. */
  #split(bytes: Uint8Array, last: boolean): { pieces: Piece[]; used: number } {
    const { frame_bytes_max, payload_bytes_max } = this.#sizes;
    const redactor = this.#redactor();
    const pieces: Piece[] = [];
    let plain_from = 0;
    let rest_of_long_line = this.#spilling;
    for (let from = 0; from < bytes.length; ) {
      const newline = bytes.indexOf(NEWLINE, from);
      const to = newline < 0 ? bytes.length : newline + 1;
      const size = to - from;
      const too_long = size > frame_bytes_max;
      if (too_long && !rest_of_long_line) {
        this.#plain(bytes.subarray(plain_from, from), true, pieces);
        pieces.push({ kind: 'too_large' });
        plain_from = from;
      }
      const text = rest_of_long_line || too_long ? null : lineText(bytes.subarray(from, to));
      const message = text === null ? null : readMessage(text);
      rest_of_long_line = false;
      if (message) {
        const large = size > payload_bytes_max;
        const ends = last && to === bytes.length;
        // A large one is shown as the output that it would be, with nothing else changed.
        const shown = large && redactor ? redactor.json(text!) : text!;
        if (shown === text) this.#plain(bytes.subarray(plain_from, large ? to : from), true, pieces, ends);
        else {
          this.#plain(bytes.subarray(plain_from, from), true, pieces);
          this.#plain(Buffer.from(newline < 0 ? shown : `${shown}\n`), true, pieces, ends);
        }
        // A carriage return is space between JSON's tokens, and would end a line of the stream.
        pieces.push({ kind: 'frame', message, text: large ? null : text!.replaceAll('\r', ' '), size });
        plain_from = to;
      }
      from = to;
    }
    const rest = bytes.subarray(plain_from);
    const held = last || !redactor ? 0 : redactor.take(rest, { last }).held;
    const used = bytes.length - held;
    this.#plain(bytes.subarray(plain_from, used), true, pieces, last);
    return { pieces, used };
  }

  /** Adds output to `pieces`; answers how much of it. `whole`: nothing of it is to wait. `last`: its stream ends with it. */
  #plain(bytes: Uint8Array, whole: boolean, pieces: Piece[], last = false): number {
    const redacted = this.#redactor()?.take(bytes, { last: whole });
    const shown = redacted?.bytes ?? bytes;
    const { used, ends, partial } = cut(shown, { more: false, last });
    let at = 0;
    for (const [i, end] of ends.entries()) {
      pieces.push({ kind: 'output', bytes: shown.subarray(at, end), partial: partial[i]! });
      at = end;
    }
    return redacted?.given(used) ?? used;
  }

  #with(more: Uint8Array): Uint8Array {
    if (this.#waiting_bytes === 0) return more;
    const bytes = Buffer.concat([this.#waiting.subarray(0, this.#waiting_bytes), more]);
    this.#waiting = NOTHING;
    this.#waiting_bytes = 0;
    return bytes;
  }

  #keep(bytes: Uint8Array): void {
    const [kept, length] = [this.#waiting, this.#waiting_bytes + bytes.length];
    if (length > kept.length) {
      this.#waiting = Buffer.allocUnsafeSlow(Math.max(length, 2 * kept.length));
      this.#waiting.set(kept.subarray(0, this.#waiting_bytes));
    }
    this.#waiting.set(bytes, this.#waiting_bytes);
    this.#waiting_bytes = length;
  }
}

/** Null for what cannot be JSON. */
function lineText(line: Uint8Array): string | null {
  if (!isUtf8(line)) return null;
  return Buffer.from(line.buffer, line.byteOffset, line.length).toString().trim();
}
