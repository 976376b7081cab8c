/**
 * Reads that stand: where a stream was read to its end, the node is asked for what follows, and tells it as it comes. The
 * bytes are kept here until the session's reader asks for them, so that a live line is one message and no round trip. What
 * is kept is bounded per stream and by number, and is never the only copy: whatever is dropped is asked for again.
 */
import { create } from '@bufbuild/protobuf';
import { limits } from '../base/limits.ts';
import { type Chunk, type Read, ReadSchema } from '../contract/gen/node_pb.ts';
import type { StreamName } from '../domain/event.ts';
import { Violation } from './wire.ts';

interface StandingRead {
  id: number;
  session_id: string;
  stream: StreamName;
  /** The place of the first byte that is kept, or of the next that comes. */
  from: number;
  kept: Uint8Array[];
  /** Bytes that it may still bring; 0: it is over. */
  left: number;
  /** What it still brings is nobody's. */
  dropped: boolean;
}

/** What is kept from a place on. */
interface Kept {
  bytes: Uint8Array;
  /** The node tells what follows: there is nothing more that is known of. */
  stands: boolean;
}

export class StandingReads {
  readonly #sessions = new Map<string, Map<StreamName, StandingRead>>();
  /** Those that may bring something or hold something. */
  readonly #reads = new Map<number, StandingRead>();
  /** Sessions whose end is known: they are read as they always were, to the last byte. */
  readonly #ended = new Set<string>();
  readonly #wake: (session_id: string) => void;
  /** A node that does not know them answers at once, with nothing. */
  #understood = true;

  constructor(wake: (session_id: string) => void) {
    this.#wake = wake;
  }

  has(id: number): boolean {
    return this.#reads.has(id);
  }

  /** What goes to the node for a stream that was read to its end, `from`; null where nothing is to stand. */
  set(id: number, session_id: string, stream: StreamName, from: number): Read | null {
    const streams = this.#sessions.get(session_id) ?? new Map<StreamName, StandingRead>();
    if (streams.has(stream) || !this.#understood || this.#ended.has(session_id)) return null;
    if (this.#reads.size >= limits.pull_standing_max) return null;
    const max = limits.pull_standing_bytes;
    const read = { id, session_id, stream, from, kept: [], left: max, dropped: false };
    this.#sessions.set(session_id, streams.set(stream, read));
    this.#reads.set(id, read);
    return create(ReadSchema, { id, sessionId: session_id, stream, from: BigInt(from), max, standing: true });
  }

  /** Up to `max` bytes that are kept from there; null, and nothing stands any more, where another place is asked for. */
  take(session_id: string, stream: StreamName, from: number, max: number): Kept | null {
    const read = this.#sessions.get(session_id)?.get(stream);
    if (!read) return null;
    if (read.from !== from) {
      this.#drop(read);
      return null;
    }
    const kept = read.kept.length === 1 ? read.kept[0]! : Buffer.concat(read.kept);
    const bytes = kept.subarray(0, max);
    read.from += bytes.length;
    read.kept = bytes.length < kept.length ? [kept.subarray(bytes.length)] : [];
    const stands = read.left > 0 || read.kept.length > 0;
    if (!stands) this.#drop(read);
    return { bytes, stands };
  }

  /** Takes what the node tells. Throws a Violation when it is more than was asked for. */
  add({ id, data, last }: Chunk): void {
    const read = this.#reads.get(id)!;
    if (data.length > read.left) throw new Violation('bytes that nobody asked for');
    read.left = last ? 0 : read.left - data.length;
    if (!read.dropped) {
      // Not a view: it would hold the whole message.
      if (data.length > 0) read.kept.push(Buffer.from(data));
      else if (last) this.#understood = false;
    }
    if (read.left === 0 && read.kept.length === 0) this.#drop(read);
    // Also where it is nobody's: the node may have sent no wake because of it.
    if (data.length > 0) this.#wake(read.session_id);
  }

  /** Why is told to the reader by a read of its own. */
  refuse(id: number): void {
    const read = this.#reads.get(id)!;
    read.left = 0;
    this.#drop(read);
    this.#wake(read.session_id);
  }

  /** The session's end is known: what it still has is asked for. */
  end(session_id: string): void {
    this.#ended.add(session_id);
    for (const read of this.#sessions.get(session_id)?.values() ?? []) this.#drop(read);
  }

  forget(session_id: string): void {
    this.end(session_id);
    this.#ended.delete(session_id);
  }

  #drop(read: StandingRead): void {
    const { id, session_id, stream, left } = read;
    if (left === 0) this.#reads.delete(id);
    if (read.dropped) return;
    read.dropped = true;
    read.kept = [];
    const streams = this.#sessions.get(session_id)!;
    streams.delete(stream);
    if (streams.size === 0) this.#sessions.delete(session_id);
  }
}
