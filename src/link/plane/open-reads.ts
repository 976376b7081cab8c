/**
 * Long-poll reads at the end of a stream: the node is asked for what follows, and sends it as it arrives. The bytes
 * are buffered here until the session's reader asks for them, so that a live line is one message and no round trip.
 * The buffers are bounded per stream and in number, and are never the only copy: anything dropped is requested again.
 */
import { create } from '@bufbuild/protobuf';
import type { StreamName } from '../../core/event.ts';
import { limits } from '../limits.ts';
import { type Chunk, type Read, ReadSchema } from '../proto/node_pb.ts';
import { ProtocolError } from '../wire.ts';

interface LongPollRead {
  id: number;
  session_id: string;
  stream: StreamName;
  /** The offset of the first buffered byte, or of the next one to arrive. */
  from: number;
  buffered: Uint8Array[];
  /** Bytes that it may still deliver; 0: it has ended. */
  left: number;
  /** Its remaining bytes are ignored. */
  dropped: boolean;
}

/** The buffered bytes from an offset. */
interface Buffered {
  bytes: Uint8Array;
  /** The node will report what follows; nothing else is known to exist. */
  open: boolean;
}

export class OpenReads {
  readonly #sessions = new Map<string, Map<StreamName, LongPollRead>>();
  /** Reads that may deliver bytes or have buffered some. */
  readonly #reads = new Map<number, LongPollRead>();
  /** Sessions whose end is known: they are read with normal requests, to the last byte. */
  readonly #ended = new Set<string>();
  readonly #wake: (session_id: string) => void;
  /** False for a node that does not support such reads: it answers at once, with nothing. */
  #supported = true;

  constructor(wake: (session_id: string) => void) {
    this.#wake = wake;
  }

  has(id: number): boolean {
    return this.#reads.has(id);
  }

  /** The message to the node for a stream that was read to its end at `from`; null if no read may be left open. */
  open(id: number, session_id: string, stream: StreamName, from: number): Read | null {
    const streams = this.#sessions.get(session_id) ?? new Map<StreamName, LongPollRead>();
    if (streams.has(stream) || !this.#supported || this.#ended.has(session_id)) return null;
    if (this.#reads.size >= limits.long_polls_max) return null;
    const max = limits.long_poll_bytes_max;
    const read = { id, session_id, stream, from, buffered: [], left: max, dropped: false };
    this.#sessions.set(session_id, streams.set(stream, read));
    this.#reads.set(id, read);
    const range = { sessionId: session_id, stream, from: BigInt(from), max };
    return create(ReadSchema, { id, ...range, longPoll: true });
  }

  /**
   * Up to `max` buffered bytes from offset `from`; null if there is no open read at that offset. Drops a read at
   * another offset.
   */
  take(session_id: string, stream: StreamName, from: number, max: number): Buffered | null {
    const read = this.#sessions.get(session_id)?.get(stream);
    if (!read) return null;
    if (read.from !== from) {
      this.#drop(read);
      return null;
    }
    const buffered = read.buffered.length === 1 ? read.buffered[0]! : Buffer.concat(read.buffered);
    const bytes = buffered.subarray(0, max);
    read.from += bytes.length;
    read.buffered = bytes.length < buffered.length ? [buffered.subarray(bytes.length)] : [];
    const open = read.left > 0 || read.buffered.length > 0;
    if (!open) this.#drop(read);
    return { bytes, open };
  }

  /** Processes a chunk from the node. Throws a ProtocolError if it is larger than requested. */
  add({ id, data, last }: Chunk): void {
    const read = this.#reads.get(id)!;
    if (data.length > read.left) throw new ProtocolError('bytes that were not requested');
    read.left = last ? 0 : read.left - data.length;
    if (!read.dropped) {
      // Copied, because a view would keep the whole message in memory.
      if (data.length > 0) read.buffered.push(Buffer.from(data));
      else if (last) this.#supported = false;
    }
    if (read.left === 0 && read.buffered.length === 0) this.#drop(read);
    // Even if the bytes are ignored: because of this read, the node may have sent no wake.
    if (data.length > 0) this.#wake(read.session_id);
  }

  /** Ends a rejected read. The session's reader gets the reason from its next read. */
  refuse(id: number): void {
    const read = this.#reads.get(id)!;
    read.left = 0;
    this.#drop(read);
    this.#wake(read.session_id);
  }

  /** The session's end is known: its remaining bytes are requested normally. */
  end(session_id: string): void {
    this.#ended.add(session_id);
    for (const read of this.#sessions.get(session_id)?.values() ?? []) this.#drop(read);
  }

  /** Like `end`, for a session that is never read again. */
  forget(session_id: string): void {
    this.end(session_id);
    this.#ended.delete(session_id);
  }

  #drop(read: LongPollRead): void {
    const { id, session_id, stream, left } = read;
    if (left === 0) this.#reads.delete(id);
    if (read.dropped) return;
    read.dropped = true;
    read.buffered = [];
    const streams = this.#sessions.get(session_id)!;
    streams.delete(stream);
    if (streams.size === 0) this.#sessions.delete(session_id);
  }
}
