/**
 * Splits the stdout of an agent that speaks ACP into frames and output (pure). A frame is a whole line, so bytes wait
 * here until their line ends. A line that gets too long becomes output and is reported. Secrets in output are redacted.
 * Frames are redacted where they are displayed, because replies to the agent must use its exact values.
 */
import { isUtf8 } from 'node:buffer';
import { type Message, readMessage } from '../../acp/message.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Redactor } from '../../core/redaction.ts';
import { limits } from '../limits.ts';
import { cut } from './framing.ts';
import type { UnfinishedLine, UnfinishedLines } from './unfinished-lines.ts';

export type Piece =
  /**
   * `text`: one line of JSON; null if it is too large for an event. In that case, its bytes precede it as output. `end`:
   * where its line ends in the bytes of all pieces.
   */
  | { kind: 'frame'; message: Message; text: string | null; size: number; end: number }
  | { kind: 'output'; bytes: Uint8Array; partial: boolean }
  | { kind: 'too_large' };

export interface Frames {
  /** The raw bytes of the pieces, starting where the previous ones ended. */
  bytes: Uint8Array;
  pieces: Piece[];
  /** The current line is too long and has not ended yet. */
  spilling: boolean;
}

export interface FrameSizes {
  /** Maximum size of a line that can be a frame. */
  frame_bytes_max: number;
  /** Maximum size of a frame whose payload is shown in full. */
  payload_bytes_max: number;
}

const NEWLINE = 0x0a;
const NOTHING = new Uint8Array();
const defaultSizes: FrameSizes = {
  frame_bytes_max: limits.acp_frame_bytes_max,
  payload_bytes_max: sharedLimits.acp_payload_bytes_max,
};

/**
 * The memory budget that a cutter's unfinished line counts against, and the callback for a line that had to be dropped.
 */
export interface LineBudget {
  lines: UnfinishedLines;
  owner: string;
  dropped(): void;
}

export class FrameCutter implements UnfinishedLine {
  /** The buffer doubles when it is full, because a line may arrive in very many pieces. */
  #waiting = NOTHING;
  #waiting_bytes = 0;
  #spilling: boolean;
  readonly #sizes: FrameSizes;
  readonly #redactor: () => Redactor | null;
  readonly #budget: LineBudget | null;
  /** The waiting bytes were dropped. Their line counts as too long unless the next read contains its end. */
  #is_dropped = false;
  #drops = 0;

  constructor(
    spilling: boolean,
    redactor: () => Redactor | null,
    { sizes = defaultSizes, budget = null }: { sizes?: FrameSizes; budget?: LineBudget | null } = {},
  ) {
    this.#budget = budget;
    this.#spilling = spilling;
    this.#redactor = redactor;
    this.#sizes = sizes;
  }

  /** Bytes that were taken but are not part of a piece yet. */
  get waiting_bytes(): number {
    return this.#waiting_bytes;
  }

  get owner(): string {
    return this.#budget?.owner ?? '';
  }

  /** How many times waiting bytes were dropped. They must be read again each time. */
  get drops(): number {
    return this.#drops;
  }

  /** Bytes were dropped and have not been taken again yet. */
  get is_dropped(): boolean {
    return this.#is_dropped;
  }

  /**
   * Drops the waiting bytes to free memory. When they are read again, they become output, like the bytes of a line that
   * is too long.
   */
  drop(): void {
    this.#waiting = NOTHING;
    this.#waiting_bytes = 0;
    this.#is_dropped = true;
    this.#drops++;
    this.#budget?.dropped();
  }

  /** Call this when the cutter takes no more bytes. */
  close(): void {
    this.#waiting = NOTHING;
    this.#waiting_bytes = 0;
    this.#count();
  }

  /**
   * Adds bytes and returns the complete pieces, or null if all bytes wait for more. `last`: the stream ends. The result
   * may be a view of `chunk`; waiting bytes are always copied.
   */
  take(chunk: Uint8Array, { last }: { last: boolean }): Frames | null {
    const is_dropped = this.#is_dropped && chunk.length > 0;
    this.#is_dropped = false;
    const taken = this.#take(chunk, last, is_dropped);
    // The line is counted only now, because counting it may drop it.
    this.#count();
    return taken;
  }

  #take(chunk: Uint8Array, last: boolean, is_dropped: boolean): Frames | null {
    const ends = last ? chunk.length : chunk.lastIndexOf(NEWLINE) + 1;
    if (ends > 0 || last) return this.#lines(chunk, ends, last);
    const fits = this.#waiting_bytes + chunk.length <= this.#sizes.frame_bytes_max;
    if (fits && !this.#spilling && !is_dropped) {
      this.#keep(chunk);
      return null;
    }
    return this.#spill(chunk);
  }

  #count(): void {
    this.#budget?.lines.set(this, this.#waiting.length);
  }

  #lines(chunk: Uint8Array, ends: number, last: boolean): Frames | null {
    const all = this.#withWaiting(chunk.subarray(0, ends));
    const { pieces, used } = this.#split(all, last);
    this.#keep(all.subarray(used));
    this.#keep(chunk.subarray(ends));
    if (used === 0) return null;
    this.#spilling = false;
    return { bytes: all.subarray(0, used), pieces, spilling: false };
  }

  #spill(chunk: Uint8Array): Frames | null {
    const all = this.#withWaiting(chunk);
    const pieces: Piece[] = this.#spilling ? [] : [{ kind: 'too_large' }];
    const used = this.#plain(all, false, pieces);
    this.#keep(all.subarray(used));
    this.#spilling = true;
    return used === 0 ? null : { bytes: all.subarray(0, used), pieces, spilling: true };
  }

  /**
   * Splits complete lines into pieces. `used`: the number of processed bytes. The rest waits, because a secret may
   * begin there and continue in the next line.
   */
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
        // A large frame becomes output as it is, except that its secrets are redacted.
        const shown = large && redactor ? redactor.json(text!) : text!;
        if (shown === text) this.#plain(bytes.subarray(plain_from, large ? to : from), true, pieces, ends);
        else {
          this.#plain(bytes.subarray(plain_from, from), true, pieces);
          this.#plain(Buffer.from(newline < 0 ? shown : `${shown}\n`), true, pieces, ends);
        }
        // A carriage return is whitespace between JSON tokens, but would end a line of the SSE stream.
        pieces.push({
          kind: 'frame',
          message,
          text: large ? null : text!.replaceAll('\r', ' '),
          size,
          end: to,
        });
        plain_from = to;
      }
      from = to;
    }
    const rest = bytes.subarray(plain_from);
    const held = last || !redactor ? 0 : redactor.take(rest, { last }).held;
    // The beginning of a character right before the held bytes waits with them.
    const used = this.#plain(rest.subarray(0, rest.length - held), true, pieces, last);
    return { pieces, used: plain_from + used };
  }

  /**
   * Adds output to `pieces` and returns how many of the bytes it used. `whole`: only an incomplete character at the end
   * may wait. `last`: the stream ends here.
   */
  #plain(bytes: Uint8Array, whole: boolean, pieces: Piece[], last = false): number {
    const redacted = this.#redactor()?.take(bytes, { last: whole });
    const shown = redacted?.bytes ?? bytes;
    const { used, ends, partial } = cut(shown, { more: false, last });
    let at = 0;
    for (const [i, end] of ends.entries()) {
      pieces.push({ kind: 'output', bytes: shown.subarray(at, end), partial: partial[i]! });
      at = end;
    }
    return redacted?.sourceBytes(used) ?? used;
  }

  #withWaiting(more: Uint8Array): Uint8Array {
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

/** The length of the output among these pieces. */
export function outputBytes(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, piece) => sum + (piece.kind === 'output' ? piece.bytes.length : 0), 0);
}

/** The line as text; null if it cannot be JSON. */
function lineText(line: Uint8Array): string | null {
  if (!isUtf8(line)) return null;
  return Buffer.from(line.buffer, line.byteOffset, line.length).toString().trim();
}
