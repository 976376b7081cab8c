/**
 * The plane's end of the byte connection. It reads spools: many reads are in progress at a time, and each is answered
 * in chunks. It reports to the node how many bytes have arrived, so that the node never has more in flight than the
 * link drains in a short time.
 */
import { create } from '@bufbuild/protobuf';
import { Wake } from '../../base/async.ts';
import type { StreamName } from '../../core/event.ts';
import { problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import {
  type Chunk,
  type PullRequest,
  PullRequestSchema,
  type PullResponse,
  type Read,
  ReadSchema,
} from '../proto/node_pb.ts';
import { fromRefusal, ProtocolError } from '../wire.ts';
import { OpenReads } from './open-reads.ts';

interface PendingRead {
  session_id: string;
  stream: StreamName;
  from: number;
  max: number;
  into: Uint8Array | undefined;
  parts: Uint8Array[];
  length: number;
  resolve(bytes: Uint8Array): void;
  reject(error: Error): void;
}

export class Pulls {
  readonly #pending_reads = new Map<number, PendingRead>();
  readonly #requested: Read[] = [];
  readonly #long_poll: OpenReads;
  readonly #wake = new Wake();
  #credit = 0;
  #last_id = 0;
  #has_ended = false;

  /** `wake` is called when the session may have new bytes to read. */
  constructor(wake: (session_id: string) => void) {
    this.#long_poll = new OpenReads(wake);
  }

  /** Reads up to `max` bytes from `from`. The result may be a view of `into`. */
  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    if (this.#has_ended) return Promise.reject(problems.nodeUnreachable());
    const buffered = this.#long_poll.take(session_id, stream, from, max);
    if (buffered && (buffered.open || buffered.bytes.length === max)) return Promise.resolve(buffered.bytes);
    const id = this.#nextId();
    return new Promise((resolve, reject) => {
      const pending = { session_id, stream, from, max, into, parts: [], length: 0, resolve, reject };
      this.#pending_reads.set(id, pending);
      if (buffered) append(pending, buffered.bytes);
      const [rest, left] = [from + pending.length, max - pending.length];
      this.#enqueue(create(ReadSchema, { id, sessionId: session_id, stream, from: BigInt(rest), max: left }));
    });
  }

  /** Call this when the session has ended. Every later read then asks the node. */
  ended(session_id: string): void {
    this.#long_poll.end(session_id);
  }

  /** Call this when the session will not be read any more. */
  forget(session_id: string): void {
    this.#long_poll.forget(session_id);
  }

  /** The messages to the node. */
  async *requests(signal: AbortSignal): AsyncGenerator<PullRequest> {
    while (!signal.aborted) {
      if (this.#requested.length === 0 && this.#credit === 0) {
        await this.#wake.wait(undefined, signal);
        continue;
      }
      const reads = this.#requested.splice(0, limits.pull_message_items);
      const request = create(PullRequestSchema, { reads, credit: this.#credit });
      this.#credit = 0;
      yield request;
    }
  }

  /** Processes the node's answers until they end; throws a ProtocolError if one is malformed. */
  async take(responses: AsyncIterable<PullResponse>): Promise<void> {
    let uncredited = 0;
    for await (const { chunks, refused } of responses) {
      for (const chunk of chunks) {
        if (this.#long_poll.has(chunk.id)) this.#long_poll.add(chunk);
        else this.#add(chunk);
        uncredited += chunk.data.length;
      }
      for (const { id, refusal } of refused) {
        if (this.#long_poll.has(id)) this.#long_poll.refuse(id);
        else this.#answered(id).reject(fromRefusal(refusal ?? { kind: '', code: '', message: '' }));
      }
      // A single line needs no credit message, because the window is much larger.
      if (uncredited >= limits.pull_credit_bytes) {
        this.#credit += uncredited;
        uncredited = 0;
        this.#wake.notify();
      }
    }
  }

  /** Completes every read in progress with the bytes that it has received. Reads without any, and later ones, fail. */
  end(): void {
    this.#has_ended = true;
    for (const pending of this.#pending_reads.values()) {
      if (pending.length > 0) pending.resolve(bytesOf(pending));
      else pending.reject(problems.nodeUnreachable());
    }
    this.#pending_reads.clear();
    this.#wake.notify();
  }

  #enqueue(read: Read): void {
    this.#requested.push(read);
    this.#wake.notify();
  }

  #add({ id, data, last }: Chunk): void {
    const pending = this.#pending_reads.get(id);
    if (!pending || pending.length + data.length > pending.max)
      throw new ProtocolError('bytes that were not requested');
    append(pending, data);
    if (!last) return;
    this.#answered(id).resolve(bytesOf(pending));
    const { session_id, stream, from, length, max } = pending;
    if (length === max) return;
    const long_poll = this.#long_poll.open(this.#nextId(), session_id, stream, from + length);
    if (long_poll) this.#enqueue(long_poll);
  }

  #answered(id: number): PendingRead {
    const pending = this.#pending_reads.get(id);
    if (!pending) throw new ProtocolError('an answer to an unknown read');
    this.#pending_reads.delete(id);
    return pending;
  }

  /** Ids have 32 bits and wrap around; an id that is still in use is skipped. */
  #nextId(): number {
    do this.#last_id = (this.#last_id + 1) >>> 0;
    while (this.#pending_reads.has(this.#last_id) || this.#long_poll.has(this.#last_id));
    return this.#last_id;
  }
}

function append(pending: PendingRead, bytes: Uint8Array): void {
  if (pending.into) pending.into.set(bytes, pending.length);
  else pending.parts.push(bytes);
  pending.length += bytes.length;
}

function bytesOf({ into, parts, length }: PendingRead): Uint8Array {
  if (into) return into.subarray(0, length);
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, length);
}
