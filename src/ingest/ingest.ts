/**
 * Reads what a node's sessions wrote and commits it: bytes become events together with the offset that was read to.
 * One reader per session, woken without data. Facts of a session are handed on in order; its end only after the last
 * byte is committed. It decides nothing about agents: `settle` and `rebase` are the services' transactions.
 *
 * Secrets of the session are taken out of its bytes before they are committed. The beginning of one at the end of what
 * was read is not committed, so it is read again with what follows.
 */
import { sleep, Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Logger } from '../base/log.ts';
import { type StreamName, streamNames } from '../domain/event.ts';
import type { Node, SessionEnd, SessionFact } from '../domain/node.ts';
import { isOutOfReach, Problem } from '../domain/problem.ts';
import type { Redactor } from '../domain/redaction.ts';
import type { StreamSizes } from '../domain/session.ts';
import type { IngestBatch, Store } from '../store/store.ts';
import { FrameCutter, type Piece as FramePiece } from './frames.ts';
import { cut } from './framing.ts';

/** How far a stream is committed. `offset` counts the stream's bytes; `offset - base` is the place in the spool file. */
export interface StreamCursor {
  offset: number;
  base: number;
  /** The last ≤ 64 committed bytes. */
  tail: Uint8Array;
  /** How many bytes of output they became. */
  output: number;
}

export interface SessionCursor {
  session_id: string;
  agent_id: string;
  streams: Record<StreamName, StreamCursor>;
  /** Number of the last consumed fact. */
  fact: number;
  /** Its stdout is a conversation in ACP; `spilling`: a line that is too long goes on. Null: it is lines. */
  acp: { spilling: boolean } | null;
  /** What takes secrets out of what it says, asked at each read; null: nothing does. */
  redactor(): Redactor | null;
}

/** What was read of an ACP stdout: pieces become events together with the offset that they reach to. */
export interface FrameBatch {
  agent_id: string;
  session_id: string;
  from: number;
  to: number;
  tail: Uint8Array;
  ts_ms: number;
  pieces: readonly FramePiece[];
  spilling: boolean;
}

export interface IngestOptions {
  node: Node;
  store: Store;
  clock: Clock;
  log: Logger;
  /** The committed cursor of a session; null when the plane no longer follows it. */
  load(session_id: string): Promise<SessionCursor | null>;
  /** Commits what a fact means, and the fact's number with it. */
  settle(session_id: string, fact: SessionFact): Promise<void>;
  /** Commits frames, what follows from them, and the offset. Throws `StaleBatch` as `Store.ingest` does. */
  frames(batch: FrameBatch): Promise<unknown>;
  /** Commits that a spool lost bytes: what it holds from its beginning on goes on at the stream's offset. */
  rebase(session_id: string, stream: StreamName): Promise<void>;
  /** How long the harmless beginning of a secret waits for the rest. */
  hold_ms?: number;
}

/** Bytes that were read and cut, ready to be committed. */
interface Taken {
  to: number;
  tail: Uint8Array;
  output: number;
  commit(): Promise<unknown>;
}

/** Bytes that are being committed: what is read meanwhile goes on behind them. */
interface Piece {
  offset: number;
  tail: Uint8Array;
  output: number;
  /** Resolves when they are committed and the cursor has moved. */
  done: Promise<void>;
}

/** Where bytes begin: the offset, and the committed bytes right before it. */
interface Place {
  agent_id: string;
  session_id: string;
  from: number;
  before: Uint8Array;
  output: number;
}

/** The beginning of a secret, perhaps, at the end of what was read. */
interface Held {
  /** Where the stream ended then. */
  end: number;
  since: number;
  /** Nobody would learn a secret from it: it is shown when nothing follows for a while. */
  is_harmless: boolean;
}

/**
 * Buffers for streams that write without a pause: a batch is stored before its buffer is used again. A stream that gets
 * none reads into memory of just the size.
 */
class ReadBuffers {
  readonly #free: Uint8Array[] = [];
  #made = 0;

  take(): Uint8Array | undefined {
    const buffer = this.#free.pop();
    if (buffer || this.#made === limits.ingest_buffers_max) return buffer;
    this.#made++;
    return Buffer.allocUnsafeSlow(limits.ingest_read_bytes + limits.spool_check_bytes);
  }

  give(buffer: Uint8Array | undefined): void {
    if (buffer) this.#free.push(buffer);
  }
}

type ReaderOptions = IngestOptions & { buffers: ReadBuffers };

export class Ingest {
  readonly #options: ReaderOptions;
  readonly #readers = new Map<string, SessionReader>();
  #closing = false;

  constructor(options: IngestOptions) {
    this.#options = { ...options, buffers: new ReadBuffers() };
  }

  /**
   * Follows a session from its committed cursor; facts already known may come along. Following twice is a wake. Throws
   * when a node tells more than an honest one has to tell.
   */
  follow(session_id: string, facts: readonly SessionFact[] = []): void {
    if (this.#closing) return;
    let reader = this.#readers.get(session_id);
    if (!reader) {
      if (this.#readers.size >= limits.ingest_sessions_max) throw new Error('too many sessions');
      reader = new SessionReader(this.#options, session_id, () => this.#readers.delete(session_id));
      this.#readers.set(session_id, reader);
    }
    for (const fact of facts) reader.add(fact);
    reader.wake();
  }

  fact(fact: SessionFact): void {
    this.follow(fact.session_id, [fact]);
  }

  wake(session_id: string): void {
    this.#readers.get(session_id)?.wake();
  }

  /** Stops reading after the commits under way; what is not read yet is read by the next plane. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all([...this.#readers.values()].map((reader) => reader.close()));
  }
}

class SessionReader {
  readonly #options: ReaderOptions;
  readonly #id: string;
  readonly #wake = new Wake();
  readonly #stop = new AbortController();
  readonly #facts: SessionFact[] = [];
  readonly #done: Promise<void>;
  #cursor: SessionCursor | null = null;
  #verified: Record<StreamName, boolean> = { stdout: false, stderr: false };
  /** The last read was full: there is more than one takes at a time. */
  readonly #busy: Record<StreamName, boolean> = { stdout: false, stderr: false };
  /** What is being committed while its stream is read on. */
  readonly #pieces: Record<StreamName, Piece | null> = { stdout: null, stderr: null };
  /** Streams whose spool is read out and shorter than the end says: its sizes no longer bind them. */
  readonly #lost = new Set<StreamName>();
  readonly #held: Record<StreamName, Held | null> = { stdout: null, stderr: null };
  /** Committed bytes at the end that are the harmless beginning of a secret, perhaps. */
  readonly #shown: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  /** Streams of which nothing is held back: no more will come. */
  readonly #released = new Set<StreamName>();
  /** Of a stdout that is a conversation in ACP. */
  #frames: FrameCutter | null = null;

  constructor(options: ReaderOptions, session_id: string, onDone: () => void) {
    this.#options = options;
    this.#id = session_id;
    this.#done = this.#run().finally(onDone);
  }

  add(fact: SessionFact): void {
    if (this.#facts.some((known) => known.number === fact.number)) return;
    if (this.#facts.length >= limits.ingest_facts_max) throw new Error('too many facts of one session');
    this.#facts.push(fact);
    this.#facts.sort((a, b) => a.number - b.number);
  }

  wake(): void {
    this.#wake.notify();
  }

  close(): Promise<void> {
    this.#stop.abort();
    return this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    let retry_ms = 0;
    while (!signal.aborted) {
      try {
        this.#cursor ??= await this.#load();
        if (!this.#cursor) return;
        const ended = await this.#catchUp(this.#cursor);
        retry_ms = 0;
        if (ended) return;
        await this.#wake.wait(this.#heldFor(), signal);
      } catch (error) {
        // Nothing is lost: the bytes stay in the spool, and the cursor is read again from the database.
        await Promise.allSettled(streamNames.map((stream) => this.#committed(stream)));
        this.#cursor = null;
        if (isOutOfReach(error)) {
          // Its node wakes it when it is back.
          await this.#wake.wait(undefined, signal);
          continue;
        }
        retry_ms = Math.min(Math.max(retry_ms * 2, limits.ingest_retry_ms), limits.ingest_retry_ms_max);
        this.#options.log.warn(
          { session_id: this.#id, err: describe(error), retry_ms },
          'output is not committed; trying again',
        );
        await sleep(retry_ms, signal);
      }
    }
  }

  async #load(): Promise<SessionCursor | null> {
    this.#verified = { stdout: false, stderr: false };
    const cursor = await this.#options.load(this.#id);
    if (cursor) this.#forgetFacts(cursor.fact);
    this.#frames = cursor?.acp ? new FrameCutter(cursor.acp.spilling, cursor.redactor) : null;
    for (const stream of streamNames) {
      this.#held[stream] = null;
      this.#shown[stream] = cursor?.redactor()?.shownAtEnd(cursor.streams[stream].tail) ?? 0;
    }
    return cursor;
  }

  /** Reads and settles until nothing is left to do; true when the session is over. */
  async #catchUp(cursor: SessionCursor): Promise<boolean> {
    for (let progress = true; progress && !this.#stop.signal.aborted; ) {
      // Facts first: an agent is known to run before its first byte is shown.
      if (await this.#settleFacts(cursor)) return true;
      if (cursor.fact === 0 && this.#facts.length === 0) return false;
      const end = this.#end();
      progress = await this.#readStreams(cursor);
      if (end && !progress) {
        await this.#giveUpLostBytes(cursor, end);
        progress = true;
      }
    }
    for (const stream of streamNames) await this.#committed(stream);
    return false;
  }

  /** Both at once: where a read takes a round trip, it takes one and not two. */
  async #readStreams(cursor: SessionCursor): Promise<boolean> {
    const reads = await Promise.allSettled(streamNames.map((stream) => this.#readStream(cursor, stream)));
    let progress = false;
    for (const read of reads) {
      if (read.status === 'rejected') throw read.reason;
      progress ||= read.value;
    }
    return progress;
  }

  /** Settles what can be: the end only when the last byte is committed. True when the session is over. */
  async #settleFacts(cursor: SessionCursor): Promise<boolean> {
    for (let fact = this.#facts[0]; fact; fact = this.#facts[0]) {
      const ended = fact.body.kind === 'ended';
      if (fact.body.kind === 'ended' && !this.#complete(cursor, fact.body.end)) return false;
      await this.#options.settle(this.#id, fact);
      cursor.fact = fact.number;
      this.#forgetFacts(fact.number);
      this.#confirm(cursor);
      if (ended) return true;
    }
    return false;
  }

  #end(): SessionEnd | null {
    const fact = this.#facts.at(-1);
    return fact?.body.kind === 'ended' ? fact.body.end : null;
  }

  #complete(cursor: SessionCursor, end: SessionEnd): boolean {
    return streamNames.every(
      (stream) => this.#lost.has(stream) || place(cursor, stream) === end.sizes[stream],
    );
  }

  /** The end counts bytes that the spool no longer holds: told as lost, instead of waiting for them for ever. */
  async #giveUpLostBytes(cursor: SessionCursor, end: SessionEnd): Promise<void> {
    for (const stream of streamNames) {
      if (this.#lost.has(stream) || place(cursor, stream) === end.sizes[stream]) continue;
      if (this.#held[stream] && !this.#released.has(stream)) {
        this.#released.add(stream);
        continue;
      }
      if (stream === 'stdout' && this.#frames) await this.#letGo(cursor, this.#frames);
      await this.#rebase(cursor, stream);
      this.#lost.add(stream);
    }
  }

  /** Half a frame whose end never comes is output. */
  async #letGo(cursor: SessionCursor, frames: FrameCutter): Promise<void> {
    const { offset, base, tail, output } = cursor.streams.stdout;
    const from = { agent_id: cursor.agent_id, session_id: this.#id, from: offset, before: tail, output };
    const taken = this.#cutFrames(frames, from, new Uint8Array(), true);
    if (!taken) return;
    await taken.commit();
    cursor.streams.stdout = { offset: taken.to, base, tail: taken.tail, output: taken.output };
  }

  async #rebase(cursor: SessionCursor, stream: StreamName): Promise<void> {
    await this.#options.rebase(this.#id, stream);
    const state = cursor.streams[stream];
    state.base = state.offset;
    state.tail = new Uint8Array();
    this.#held[stream] = null;
    this.#shown[stream] = 0;
    if (stream === 'stdout' && this.#frames) this.#frames = new FrameCutter(false, cursor.redactor);
  }

  /**
   * Commits one piece of what a stream has beyond the cursor; false when nothing more is known to be there. A stream
   * that writes without a pause is read on while its last piece is being committed.
   */
  async #readStream(cursor: SessionCursor, stream: StreamName): Promise<boolean> {
    const { buffers } = this.#options;
    const buffer = this.#busy[stream] ? buffers.take() : undefined;
    let done = Promise.resolve();
    try {
      const held_end = this.#held[stream]?.end;
      const taken = await this.#next(cursor, stream, buffer);
      const before = this.#pieces[stream];
      if (taken === null || taken === 'lost') {
        await this.#committed(stream);
        if (taken === 'lost') await this.#rebase(cursor, stream);
        // A frame that is longer than a read waits for its end; what is held back may have come in part.
        const held = this.#held[stream];
        const grew = held !== null && held.end !== held_end && this.#end() !== null;
        return taken === 'lost' || this.#busy[stream] || grew;
      }
      const { to, tail, output } = taken;
      done = taken.commit().then(() => {
        const { base } = cursor.streams[stream];
        cursor.streams[stream] = { offset: to, base, tail, output };
        this.#confirm(cursor);
      });
      this.#pieces[stream] = { offset: to, tail, output, done };
      await before?.done;
      const full = this.#busy[stream];
      if (!full) await this.#committed(stream);
      // What was written after a read that reached the end wakes again.
      return full || this.#facts.length > 0;
    } finally {
      const give = () => buffers.give(buffer);
      done.then(give, give);
    }
  }

  /** Waits for what is being committed; throws when that fails. */
  async #committed(stream: StreamName): Promise<void> {
    const piece = this.#pieces[stream];
    this.#pieces[stream] = null;
    await piece?.done;
  }

  /** Reads what follows; null when nothing does that is to be committed, `lost` when the spool is not what was read. */
  async #next(
    cursor: SessionCursor,
    stream: StreamName,
    buffer: Uint8Array | undefined,
  ): Promise<Taken | null | 'lost'> {
    const { base } = cursor.streams[stream];
    const { offset, tail, output } = this.#pieces[stream] ?? cursor.streams[stream];
    const frames = stream === 'stdout' ? this.#frames : null;
    const from = offset - base + (frames?.waiting_bytes ?? 0);
    const max = frames ? limits.acp_read_bytes : limits.ingest_read_bytes;
    const check = this.#verified[stream] ? 0 : Math.min(tail.length, from);
    const read = await this.#read(stream, from - check, max + check, buffer);
    if (!read || !sameBytes(read.subarray(0, check), lastOf(tail, check))) return 'lost';
    this.#verified[stream] = true;
    const chunk = read.subarray(check);
    const full = chunk.length === max;
    this.#busy[stream] = full;
    const last = this.#isLast(from + chunk.length, stream);
    const place = { agent_id: cursor.agent_id, session_id: this.#id, from: offset, before: tail, output };
    if (frames) return this.#cutFrames(frames, place, chunk, last);
    const redactor = cursor.redactor();
    const shown = redactor
      ? this.#redact(redactor, place, stream, chunk, last)
      : { bytes: chunk, given: (count: number) => count, beginning: 0 };
    return this.#cutLines(place, stream, chunk, shown, { more: full, last });
  }

  /** Takes secrets out, and notes what is held back of the chunk. `beginning`: bytes at the end that may be one's. */
  #redact(redactor: Redactor, place: Place, stream: StreamName, chunk: Uint8Array, last: boolean) {
    const shown = this.#shown[stream];
    const data = shown === 0 ? chunk : Buffer.concat([lastOf(place.before, shown), chunk]);
    const redacted = redactor.take(data, { shown, last: last || this.#released.has(stream) });
    const { held } = redacted;
    if (held === 0) {
      this.#held[stream] = null;
      return { ...redacted, beginning: 0 };
    }
    const end = place.from + chunk.length;
    const before = this.#held[stream];
    const since = before?.end === end ? before.since : performance.now();
    const is_harmless = redactor.isHarmless(lastOf(data, held));
    this.#held[stream] = { end, since, is_harmless };
    if (!is_harmless || this.#heldMs(stream) > 0) return { ...redacted, beginning: 0 };
    this.#held[stream] = null;
    return { ...redactor.take(data, { shown, last: true }), beginning: held };
  }

  /** How long it is until what is held back may be shown; 0: now. Infinite when more has to come first. */
  #heldMs(stream: StreamName): number {
    const held = this.#held[stream];
    if (!held?.is_harmless) return Number.POSITIVE_INFINITY;
    return Math.max(0, held.since + (this.#options.hold_ms ?? limits.redact_hold_ms) - performance.now());
  }

  /** The shortest such time of both streams; undefined: only a wake counts. */
  #heldFor(): number | undefined {
    const ms = Math.min(...streamNames.map((stream) => this.#heldMs(stream)));
    // A timer may ring a little early.
    return Number.isFinite(ms) ? ms + 1 : undefined;
  }

  #cutLines(
    place: Place,
    stream: StreamName,
    chunk: Uint8Array,
    shown: { bytes: Uint8Array; given(count: number): number; beginning: number },
    { more, last }: { more: boolean; last: boolean },
  ): Taken | null {
    if (shown.bytes.length === 0) return null;
    const { used, ends, partial } = cut(shown.bytes, { more, last });
    if (used === 0) return null;
    const given = shown.given(used);
    this.#shown[stream] = Math.max(0, shown.beginning - (chunk.length - given));
    const batch: IngestBatch = {
      ...this.#reach(place, chunk.subarray(0, given)),
      stream,
      bytes: shown.bytes.subarray(0, used),
      output_from: place.output,
      ends,
      partial,
    };
    const output = place.output + used;
    return { to: batch.to, tail: batch.tail, output, commit: () => this.#options.store.ingest(batch) };
  }

  #cutFrames(frames: FrameCutter, place: Place, chunk: Uint8Array, last: boolean): Taken | null {
    const taken = frames.take(chunk, { last });
    if (!taken) return null;
    const { bytes, pieces, spilling } = taken;
    const batch: FrameBatch = { ...this.#reach(place, bytes), pieces, spilling };
    // How much output there is of it, its own transaction counts.
    const { output } = place;
    return { to: batch.to, tail: batch.tail, output, commit: () => this.#options.frames(batch) };
  }

  #reach({ agent_id, session_id, from, before }: Place, bytes: Uint8Array) {
    const [to, ts_ms] = [from + bytes.length, this.#options.clock.now()];
    return { agent_id, session_id, from, to, tail: lastBytes(before, bytes), ts_ms };
  }

  /** Null when the spool no longer holds these bytes; where not even its beginning can be read, nothing is there. */
  async #read(stream: StreamName, from: number, max: number, into?: Uint8Array): Promise<Uint8Array | null> {
    try {
      return await this.#options.node.read(this.#id, stream, from, max, into);
    } catch (error) {
      if (error instanceof Problem && error.code === 'output_lost')
        return from === 0 ? new Uint8Array() : null;
      throw error;
    }
  }

  #isLast(position: number, stream: StreamName): boolean {
    return this.#facts.some((fact) => fact.body.kind === 'ended' && fact.body.end.sizes[stream] === position);
  }

  #confirm(cursor: SessionCursor): void {
    const places: StreamSizes = { stdout: place(cursor, 'stdout'), stderr: place(cursor, 'stderr') };
    this.#options.node.committed(this.#id, places, cursor.fact);
  }

  #forgetFacts(up_to: number): void {
    while (this.#facts[0] && this.#facts[0].number <= up_to) this.#facts.shift();
  }
}

function place(cursor: SessionCursor, stream: StreamName): number {
  const { offset, base } = cursor.streams[stream];
  return offset - base;
}

function lastBytes(before: Uint8Array, bytes: Uint8Array): Uint8Array {
  const keep = limits.spool_check_bytes;
  if (bytes.length >= keep) return Buffer.from(lastOf(bytes, keep));
  const joined = Buffer.concat([before, bytes]);
  return joined.subarray(Math.max(0, joined.length - keep));
}

/** The last `count` bytes (unlike `slice(-count)`, none for 0). */
function lastOf(bytes: Uint8Array, count: number): Uint8Array {
  return bytes.subarray(bytes.length - count);
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
