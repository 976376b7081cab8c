/**
 * The plane's end of the byte connection: reads of spools as calls, answered in pieces, many at a time. It tells the node
 * how many bytes arrived, so that the node never has more on the way than the link drains in a moment.
 */
import { create } from '@bufbuild/protobuf';
import { Wake } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import { type PullRequest, PullRequestSchema, type PullResponse } from '../contract/gen/node_pb.ts';
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
  readonly #asked: PullRequest[] = [];
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
      const value = { id, sessionId: session_id, stream, from: BigInt(from), max };
      this.#asked.push(create(PullRequestSchema, { body: { case: 'read', value } }));
      this.#wake.notify();
    });
  }

  /** What goes to the node. */
  async *requests(signal: AbortSignal): AsyncGenerator<PullRequest> {
    while (!signal.aborted) {
      for (let next = this.#asked.shift(); next; next = this.#asked.shift()) yield next;
      if (this.#credit > 0) {
        const value = this.#credit;
        this.#credit = 0;
        yield create(PullRequestSchema, { body: { case: 'credit', value } });
        continue;
      }
      await this.#wake.wait(undefined, signal);
    }
  }

  /** Takes what the node answers until it ends; throws a Violation when an answer is none. */
  async take(responses: AsyncIterable<PullResponse>): Promise<void> {
    let uncredited = 0;
    for await (const { body } of responses) {
      if (body.case === 'refused') {
        const refusal = body.value.refusal ?? { kind: '', code: '', message: '' };
        this.#answered(body.value.id).reject(fromRefusal(refusal));
      } else if (body.case === 'chunk') {
        const { id, data, last } = body.value;
        const reading = this.#readings.get(id);
        if (!reading || reading.length + data.length > reading.max)
          throw new Violation('bytes that nobody asked for');
        if (reading.into) reading.into.set(data, reading.length);
        else reading.parts.push(data);
        reading.length += data.length;
        uncredited += data.length;
        if (last) this.#answered(id).resolve(bytesOf(reading));
        if (uncredited >= limits.pull_credit_bytes || this.#readings.size === 0) {
          this.#credit += uncredited;
          uncredited = 0;
          this.#wake.notify();
        }
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
