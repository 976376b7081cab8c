/**
 * The plane's end of the byte connection: reads of spools as calls, answered in pieces, many at a time. It tells the node
 * how many bytes arrived, so that the node never has more on the way than the link drains in a moment.
 */
import { create } from '@bufbuild/protobuf';
import { Wake } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import {
  type Chunk,
  type PullRequest,
  PullRequestSchema,
  type PullResponse,
  type Read,
  ReadSchema,
} from '../contract/gen/node_pb.ts';
import type { StreamName } from '../domain/event.ts';
import { problems } from '../domain/problem.ts';
import { StandingReads } from './standing.ts';
import { fromRefusal, Violation } from './wire.ts';

interface Reading {
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
  readonly #readings = new Map<number, Reading>();
  readonly #asked: Read[] = [];
  readonly #standing: StandingReads;
  readonly #wake = new Wake();
  #credit = 0;
  #last_id = 0;
  #over = false;

  /** `wake`: there are bytes of the session that it did not ask for yet. */
  constructor(wake: (session_id: string) => void) {
    this.#standing = new StandingReads(wake);
  }

  /** Up to `max` bytes from `from`. The answer may be a view of `into`. */
  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    if (this.#over) return Promise.reject(problems.nodeUnreachable());
    const kept = this.#standing.take(session_id, stream, from, max);
    if (kept && (kept.stands || kept.bytes.length === max)) return Promise.resolve(kept.bytes);
    const id = this.#nextId();
    return new Promise((resolve, reject) => {
      const reading = { session_id, stream, from, max, into, parts: [], length: 0, resolve, reject };
      this.#readings.set(id, reading);
      if (kept) append(reading, kept.bytes);
      const [rest, left] = [from + reading.length, max - reading.length];
      this.#ask(create(ReadSchema, { id, sessionId: session_id, stream, from: BigInt(rest), max: left }));
    });
  }

  /** The session's end is known: no read of it is answered before the node was asked. */
  ended(session_id: string): void {
    this.#standing.end(session_id);
  }

  /** Nothing of the session will be read any more. */
  forget(session_id: string): void {
    this.#standing.forget(session_id);
  }

  /** What goes to the node. */
  async *requests(signal: AbortSignal): AsyncGenerator<PullRequest> {
    while (!signal.aborted) {
      if (this.#asked.length === 0 && this.#credit === 0) {
        await this.#wake.wait(undefined, signal);
        continue;
      }
      const reads = this.#asked.splice(0, limits.pull_message_items);
      const request = create(PullRequestSchema, { reads, credit: this.#credit });
      this.#credit = 0;
      yield request;
    }
  }

  /** Takes what the node answers until it ends; throws a Violation when an answer is none. */
  async take(responses: AsyncIterable<PullResponse>): Promise<void> {
    let uncredited = 0;
    for await (const { chunks, refused } of responses) {
      for (const chunk of chunks) {
        if (this.#standing.has(chunk.id)) this.#standing.add(chunk);
        else this.#add(chunk);
        uncredited += chunk.data.length;
      }
      for (const { id, refusal } of refused) {
        if (this.#standing.has(id)) this.#standing.refuse(id);
        else this.#answered(id).reject(fromRefusal(refusal ?? { kind: '', code: '', message: '' }));
      }
      // A lone line is worth no message: the window is many times as large.
      if (uncredited >= limits.pull_credit_bytes) {
        this.#credit += uncredited;
        uncredited = 0;
        this.#wake.notify();
      }
    }
  }

  /** Answers every read that is under way with what came of it, and fails those of which nothing did, or come later. */
  end(): void {
    this.#over = true;
    for (const reading of this.#readings.values()) {
      if (reading.length > 0) reading.resolve(bytesOf(reading));
      else reading.reject(problems.nodeUnreachable());
    }
    this.#readings.clear();
    this.#wake.notify();
  }

  #ask(read: Read): void {
    this.#asked.push(read);
    this.#wake.notify();
  }

  #add({ id, data, last }: Chunk): void {
    const reading = this.#readings.get(id);
    if (!reading || reading.length + data.length > reading.max)
      throw new Violation('bytes that nobody asked for');
    append(reading, data);
    if (!last) return;
    this.#answered(id).resolve(bytesOf(reading));
    const { session_id, stream, from, length, max } = reading;
    if (length === max) return;
    const standing = this.#standing.set(this.#nextId(), session_id, stream, from + length);
    if (standing) this.#ask(standing);
  }

  #answered(id: number): Reading {
    const reading = this.#readings.get(id);
    if (!reading) throw new Violation('an answer that nobody asked for');
    this.#readings.delete(id);
    return reading;
  }

  /** Ids are 32 bits wide and come round again; one that still waits is passed over. */
  #nextId(): number {
    do this.#last_id = (this.#last_id + 1) >>> 0;
    while (this.#readings.has(this.#last_id) || this.#standing.has(this.#last_id));
    return this.#last_id;
  }
}

function append(reading: Reading, bytes: Uint8Array): void {
  if (reading.into) reading.into.set(bytes, reading.length);
  else reading.parts.push(bytes);
  reading.length += bytes.length;
}

function bytesOf({ into, parts, length }: Reading): Uint8Array {
  if (into) return into.subarray(0, length);
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, length);
}
