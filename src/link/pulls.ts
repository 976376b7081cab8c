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
import { fromRefusal, Violation } from './wire.ts';

interface Reading {
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
  readonly #wake = new Wake();
  #credit = 0;
  #last_id = 0;
  #over = false;

  /** Up to `max` bytes from `from`. The answer may be a view of `into`. */
  read(
    session_id: string,
    stream: StreamName,
    from: number,
    max: number,
    into?: Uint8Array,
  ): Promise<Uint8Array> {
    if (this.#over) return Promise.reject(problems.nodeUnreachable());
    const id = this.#nextId();
    return new Promise((resolve, reject) => {
      this.#readings.set(id, { max, into, parts: [], length: 0, resolve, reject });
      this.#asked.push(create(ReadSchema, { id, sessionId: session_id, stream, from: BigInt(from), max }));
      this.#wake.notify();
    });
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
        this.#add(chunk);
        uncredited += chunk.data.length;
      }
      for (const { id, refusal } of refused) {
        this.#answered(id).reject(fromRefusal(refusal ?? { kind: '', code: '', message: '' }));
      }
      if (uncredited >= limits.pull_credit_bytes || (uncredited > 0 && this.#readings.size === 0)) {
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

  #add({ id, data, last }: Chunk): void {
    const reading = this.#readings.get(id);
    if (!reading || reading.length + data.length > reading.max)
      throw new Violation('bytes that nobody asked for');
    if (reading.into) reading.into.set(data, reading.length);
    else reading.parts.push(data);
    reading.length += data.length;
    if (last) this.#answered(id).resolve(bytesOf(reading));
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
    while (this.#readings.has(this.#last_id));
    return this.#last_id;
  }
}

function bytesOf({ into, parts, length }: Reading): Uint8Array {
  if (into) return into.subarray(0, length);
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, length);
}
