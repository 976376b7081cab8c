/** Pieces of an ACP stdout, which become events together with the new offset, in one transaction or in several. */
import { keptBytes } from '../../base/kept-bytes.ts';
import type { SpoolMove } from '../../store/event-rows/spools.ts';
import { limits } from '../limits.ts';
import { type Frames, outputBytes, type Piece } from './frames.ts';

export interface BatchStart {
  agent_id: string;
  session_id: string;
  /** The committed offset. */
  from: number;
  /** The last bytes before `from`. */
  before: Uint8Array;
  /** The position in the stream's output. It is right whenever `from` is the committed offset, because both change together. */
  output_from: number;
}

export class FrameBatch {
  readonly #start: BatchStart;
  readonly #frames: Frames;

  constructor(start: BatchStart, frames: Frames) {
    this.#start = start;
    this.#frames = frames;
  }

  get agent_id(): string {
    return this.#start.agent_id;
  }

  get session_id(): string {
    return this.#start.session_id;
  }

  get output_from(): number {
    return this.#start.output_from;
  }

  get pieces(): readonly Piece[] {
    return this.#frames.pieces;
  }

  /** The stream after the first `count` pieces. The last of them must be a frame, or the last piece of the batch. */
  after(count: number): SpoolMove & { spilling: boolean } {
    const { from, before, output_from } = this.#start;
    const bytes = this.#frames.bytes.subarray(0, this.#endOf(count));
    const output = output_from + outputBytes(this.pieces.slice(0, count));
    const spilling = count === this.pieces.length && this.#frames.spilling;
    return { from, to: from + bytes.length, tail: lastBytes(before, bytes), output, spilling };
  }

  /** The batch without its first `count` pieces, as in `after`; null if nothing is left. */
  rest(count: number): FrameBatch | null {
    if (count === this.pieces.length) return null;
    const { to, tail, output } = this.after(count);
    const at = this.#endOf(count);
    const pieces = this.pieces
      .slice(count)
      .map((piece) => (piece.kind === 'frame' ? { ...piece, end: piece.end - at } : piece));
    return new FrameBatch(
      { ...this.#start, from: to, before: tail, output_from: output },
      { ...this.#frames, bytes: this.#frames.bytes.subarray(at), pieces },
    );
  }

  /** Where the first `count` pieces end in the batch's bytes. */
  #endOf(count: number): number {
    const { bytes, pieces } = this.#frames;
    if (count === pieces.length) return bytes.length;
    const last = pieces[count - 1];
    if (last?.kind !== 'frame') throw new Error('a batch can be split only after a frame');
    return last.end;
  }
}

/** The last bytes of a stream, which are compared with the spool file before the next read. */
export function lastBytes(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  const keep = limits.spool_check_bytes;
  const last = bytes.length >= keep ? bytes : Buffer.concat([before, bytes]);
  return keptBytes(last.subarray(Math.max(0, last.length - keep)));
}
