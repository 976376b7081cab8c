/**
 * Reads one stream of a session and commits it piece by piece. A piece can be read while the previous one is being
 * committed; the cursor moves when a commit is done.
 *
 * Secrets of the session are redacted before a commit. If the bytes end with a possible beginning of a secret, that
 * part is not committed, but read again together with the bytes that follow it.
 */

import type { StreamName } from '../../core/event.ts';
import type { Link, SessionFact } from '../../core/node.ts';
import { Problem } from '../../core/problem.ts';
import type { Redacted, Redactor } from '../../core/redaction.ts';
import type { IngestBatch } from '../../store/store.ts';
import { limits } from '../limits.ts';
import type { CostlyTurns } from './costly-turns.ts';
import { FrameBatch, lastBytes } from './frame-batch.ts';
import { FrameCutter } from './frames.ts';
import { type Cut, type CutOptions, cut } from './framing.ts';
import type { ReadBuffers } from './read-buffers.ts';
import type { IngestOptions, SessionCursor, StreamCursor } from './source.ts';
import type { UnfinishedLines } from './unfinished-lines.ts';

export type ReaderOptions = IngestOptions & {
  buffers: ReadBuffers;
  lines: UnfinishedLines;
  turns: CostlyTurns;
};

/** State that the streams of a session share. */
export interface SessionState {
  /** Facts that have not been handled yet, in order. */
  facts: readonly SessionFact[];
  /** Aborts when the session is no longer read. */
  signal: AbortSignal;
  wake(): void;
  /** Called when a commit is done and the cursor has moved. */
  onCommitted(cursor: SessionCursor): void;
}

/** Bytes that were read and split into events, ready to be committed. */
interface Piece {
  to: number;
  tail: Uint8Array;
  output: number;
  commit(): Promise<unknown>;
}

/** The end of the bytes that are being committed. The next read continues there. */
interface Pending extends Pick<StreamCursor, 'offset' | 'tail' | 'output'> {
  /** Resolves when the bytes are committed and the cursor has moved. */
  done: Promise<void>;
}

/** The start of a read: the offset, and the committed bytes right before it. */
interface Start {
  from: number;
  before: Uint8Array;
  output: number;
}

/** A chunk after redaction, in the form in which it may be stored. */
interface RedactedChunk extends Pick<Redacted, 'bytes' | 'sourceBytes' | 'markEnd'> {
  /** How many bytes at the end of the chunk may be the beginning of a secret. */
  possible_secret_bytes: number;
}

/** A possible beginning of a secret at the end of the bytes read. */
interface Held {
  /** Where the stream ended at that time. */
  end: number;
  since: number;
  /** The bytes are too few to reveal the secret, so they are committed if nothing follows within `hold_ms`. */
  is_harmless: boolean;
}

export class StreamReader {
  readonly name: StreamName;
  readonly #options: ReaderOptions;
  readonly #session: SessionState;
  #cursor!: SessionCursor;
  /** The spool's bytes before the offset are known to match the committed ones. */
  #verified = false;
  /** The last read was full, so there are more bytes to read. */
  #busy = false;
  /** The end of the bytes that are being committed while reading continues. */
  #pending: Pending | null = null;
  /** The spool lost bytes, so it never reaches the size in the `ended` fact. */
  #lost = false;
  #held: Held | null = null;
  /** The link of the last read. */
  #link: Link | null = null;
  /** Number of committed bytes at the end that may be the harmless beginning of a secret. */
  #committed_prefix_bytes = 0;
  /** Commits held-back bytes too, because no more bytes will arrive. */
  #flush_held = false;
  /** For the stdout of an agent that speaks ACP. */
  #frames: FrameCutter | null = null;
  /** Messages of the last batch took long to handle. */
  #is_costly = false;

  constructor(options: ReaderOptions, session: SessionState, name: StreamName) {
    this.#options = options;
    this.#session = session;
    this.name = name;
  }

  /** Continues from a cursor that was just loaded. Call it before all other methods, and never during a commit. */
  reset(cursor: SessionCursor): void {
    this.#cursor = cursor;
    this.#verified = false;
    this.#held = null;
    this.#committed_prefix_bytes = cursor.redactor()?.shownAtEnd(this.#committed.tail) ?? 0;
    this.#cutFramesFrom(cursor.acp?.spilling ?? false);
  }

  close(): void {
    this.#frames?.close();
  }

  /** Whether all bytes of a stream with this size are committed, or known to be lost. */
  isComplete(size: number): boolean {
    const { offset, base } = this.#committed;
    return this.#lost || offset - base === size;
  }

  /** Waits for the commit in progress; throws if it fails. */
  async committed(): Promise<void> {
    const pending = this.#pending;
    this.#pending = null;
    await pending?.done;
  }

  /**
   * Milliseconds until held-back bytes may be committed; 0 if they may be now; infinite if more bytes must arrive
   * first.
   */
  holdMs(): number {
    if (!this.#held?.is_harmless) return Number.POSITIVE_INFINITY;
    const hold_ms = this.#options.hold_ms ?? limits.redact_hold_ms;
    return Math.max(0, this.#held.since + hold_ms - performance.now());
  }

  /**
   * Commits the next piece. Returns false if no more bytes are known to exist. For a stream that writes continuously,
   * it reads ahead while the last piece is being committed.
   */
  async commitNext(): Promise<boolean> {
    const { buffers } = this.#options;
    const cursor = this.#cursor;
    const buffer = this.#busy ? buffers.take() : undefined;
    let done = Promise.resolve();
    try {
      const held_end = this.#held?.end;
      const piece = await this.#next(buffer);
      const before = this.#pending;
      if (piece === null || piece === 'lost') {
        await this.committed();
        if (piece === 'lost') await this.#rebase();
        // There is more to do if the last read was full (a frame can be longer than one read), or if the session has
        // ended and the held-back bytes now reach further than before.
        const grew = this.#held !== null && this.#held.end !== held_end && this.#hasEnded();
        return piece === 'lost' || this.#busy || grew;
      }
      const { to, tail, output } = piece;
      done = piece.commit().then(() => {
        const { base } = cursor.streams[this.name];
        cursor.streams[this.name] = { offset: to, base, tail, output };
        this.#session.onCommitted(cursor);
      });
      this.#pending = { offset: to, tail, output, done };
      // It may fail while this still waits for the piece before it.
      done.catch(() => {});
      await before?.done;
      const full = this.#busy;
      if (!full) await this.committed();
      // The node sends a wake for anything written later, so stop here.
      return full || this.#session.facts.length > 0;
    } finally {
      const give = () => buffers.give(buffer);
      done.then(give, give);
    }
  }

  /** The session ended with `size` bytes, but fewer can be read. Stops waiting for the rest. */
  async giveUpMissingBytes(size: number): Promise<void> {
    if (this.isComplete(size)) return;
    if (this.#held && !this.#flush_held) {
      this.#flush_held = true;
      return;
    }
    if (this.#frames) {
      // The dropped bytes are in the spool, and are read again first.
      if (this.#frames.is_dropped) return;
      await this.#commitUnfinishedFrame(this.#frames);
    }
    await this.#rebase();
    this.#lost = true;
  }

  get #committed(): StreamCursor {
    return this.#cursor.streams[this.name];
  }

  #cutFramesFrom(spilling: boolean): void {
    const { owner_id, acp, redactor } = this.#cursor;
    this.#frames?.close();
    this.#frames = null;
    if (acp === null || this.name !== 'stdout') return;
    const budget = { lines: this.#options.lines, owner: owner_id, dropped: () => this.#session.wake() };
    this.#frames = new FrameCutter(spilling, redactor, { budget });
  }

  /** Commits an incomplete frame as output, because its end never arrived. */
  async #commitUnfinishedFrame(frames: FrameCutter): Promise<void> {
    const { offset, base, tail, output } = this.#committed;
    const piece = this.#cutFrames(frames, { from: offset, before: tail, output }, new Uint8Array(), true);
    if (!piece) return;
    await piece.commit();
    this.#cursor.streams[this.name] = { offset: piece.to, base, tail: piece.tail, output: piece.output };
  }

  /** Continues at the committed offset after the spool was truncated. */
  async #rebase(): Promise<void> {
    const state = this.#committed;
    const loss = { stream: this.name, offset: state.offset, link: this.#link };
    await this.#options.rebase(this.#cursor.session_id, loss);
    state.base = state.offset;
    state.tail = new Uint8Array();
    this.#held = null;
    this.#committed_prefix_bytes = 0;
    this.#cutFramesFrom(false);
  }

  /**
   * Reads the next bytes. Returns null if there is nothing to commit, and `lost` if the spool differs from the
   * committed bytes.
   */
  async #next(buffer: Uint8Array | undefined): Promise<Piece | null | 'lost'> {
    const { base } = this.#committed;
    const { offset, tail, output } = this.#pending ?? this.#committed;
    const frames = this.#frames;
    const drops = frames?.drops;
    const from = offset - base + (frames?.waiting_bytes ?? 0);
    const max = frames ? limits.acp_read_bytes : limits.ingest_read_bytes;
    const check = this.#verified ? 0 : Math.min(tail.length, from);
    const read = await this.#read(from - check, max + check, buffer);
    // During the read, the waiting bytes before these were dropped, so read again from their start.
    if (frames?.drops !== drops) return this.#next(buffer);
    if (!read || !sameBytes(read.subarray(0, check), tailOf(tail, check))) return 'lost';
    this.#verified = true;
    const chunk = read.subarray(check);
    const full = chunk.length === max;
    this.#busy = full;
    const last = this.#isLast(from + chunk.length);
    const start = { from: offset, before: tail, output };
    if (frames) {
      const piece = this.#cutFrames(frames, start, chunk, last);
      return piece ?? (frames.drops === drops ? null : this.#next(buffer));
    }
    const redactor = this.#cursor.redactor();
    const redacted = redactor
      ? this.#redact(redactor, start, chunk, last)
      : { bytes: chunk, sourceBytes: same, markEnd: same, possible_secret_bytes: 0 };
    return this.#cutLines(start, chunk, redacted, { more: full && !last, last });
  }

  /** Redacts a chunk, and records the bytes that are held back. */
  #redact(redactor: Redactor, start: Start, chunk: Uint8Array, last: boolean): RedactedChunk {
    const shown = this.#committed_prefix_bytes;
    const data = shown === 0 ? chunk : Buffer.concat([tailOf(start.before, shown), chunk]);
    const redacted = redactor.take(data, { shown, last: last || this.#flush_held });
    const { held } = redacted;
    if (held === 0) {
      this.#held = null;
      return { ...redacted, possible_secret_bytes: 0 };
    }
    const end = start.from + chunk.length;
    const since = this.#held?.end === end ? this.#held.since : performance.now();
    const is_harmless = redactor.isHarmless(tailOf(data, held));
    this.#held = { end, since, is_harmless };
    if (!is_harmless || this.holdMs() > 0) return { ...redacted, possible_secret_bytes: 0 };
    this.#held = null;
    return { ...redactor.take(data, { shown, last: true }), possible_secret_bytes: held };
  }

  #cutLines(start: Start, chunk: Uint8Array, redacted: RedactedChunk, options: CutOptions): Piece | null {
    if (redacted.bytes.length === 0) return null;
    const { used, ends, partial, is_text } = cutAtMarks(redacted, options);
    if (used === 0) return null;
    const source_bytes = redacted.sourceBytes(used);
    this.#committed_prefix_bytes = Math.max(
      0,
      redacted.possible_secret_bytes - (chunk.length - source_bytes),
    );
    const batch: IngestBatch = {
      ...this.#rangeOf(start, chunk.subarray(0, source_bytes)),
      stream: this.name,
      bytes: redacted.bytes.subarray(0, used),
      output_from: start.output,
      ends,
      partial,
      is_text,
    };
    const output = start.output + used;
    return { to: batch.to, tail: batch.tail, output, commit: () => this.#options.store.ingest(batch) };
  }

  #cutFrames(frames: FrameCutter, start: Start, chunk: Uint8Array, last: boolean): Piece | null {
    const taken = frames.take(chunk, { last });
    if (!taken) return null;
    const { agent_id, session_id } = this.#cursor;
    const { from, before, output } = start;
    const batch = new FrameBatch({ agent_id, session_id, from, before, output_from: output }, taken);
    return { ...batch.after(batch.pieces.length), commit: () => this.#commitFrames(batch) };
  }

  async #commitFrames(batch: FrameBatch): Promise<void> {
    const { turns, frames } = this.#options;
    const { signal } = this.#session;
    // The batch before it may need several transactions. One that continues another one's offset would be stale.
    await this.#pending?.done;
    const key = { owner: this.#cursor.owner_id, resource: batch.session_id };
    let was_costly = false;
    for (let rest: FrameBatch | null = batch; rest !== null; ) {
      signal.throwIfAborted();
      const part: FrameBatch = rest;
      const commit = () => frames(part);
      const count = this.#is_costly ? await turns.run(key, commit, signal) : await commit();
      rest = part.rest(count);
      was_costly ||= rest !== null && count < limits.acp_costly_messages_max;
      this.#is_costly ||= was_costly;
    }
    this.#is_costly = was_costly;
  }

  #rangeOf({ from, before }: Start, bytes: Uint8Array) {
    const { agent_id, session_id } = this.#cursor;
    const [to, ts_ms] = [from + bytes.length, this.#options.clock.now()];
    return { agent_id, session_id, from, to, tail: lastBytes(before, bytes), ts_ms };
  }

  /** Returns null if the spool no longer has these bytes, and no bytes if even its beginning cannot be read. */
  async #read(from: number, max: number, into?: Uint8Array): Promise<Uint8Array | null> {
    this.#link = this.#options.node.link;
    try {
      return await this.#options.node.read(this.#cursor.session_id, this.name, from, max, into);
    } catch (error) {
      if (error instanceof Problem && error.code === 'output_lost')
        return from === 0 ? new Uint8Array() : null;
      throw error;
    }
  }

  #hasEnded(): boolean {
    return this.#session.facts.at(-1)?.body.kind === 'ended';
  }

  #isLast(position: number): boolean {
    return this.#session.facts.some(
      ({ body }) => body.kind === 'ended' && body.end.sizes[this.name] === position,
    );
  }
}

/**
 * Cuts redacted bytes into events. The next read begins after the last event, so that event contains whole marks only:
 * the bytes of a secret have no counterpart within its mark.
 */
function cutAtMarks({ bytes, markEnd }: RedactedChunk, options: CutOptions): Cut {
  const first = cut(bytes, options);
  // Redaction can make a full read so short that all of it would wait. The next read would be the same one, so none of it may.
  const end = first.used === 0 ? bytes.length : markEnd(first.used);
  if (end === first.used) return first;
  // A mark ends with a bracket, so the second cut uses all bytes up to there.
  return cut(bytes.subarray(0, end), { more: false, last: false });
}

function same(count: number): number {
  return count;
}

/** The last `count` bytes. For 0, this is empty, unlike `slice(-count)`. */
function tailOf(bytes: Uint8Array, count: number): Uint8Array {
  return bytes.subarray(bytes.length - count);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
