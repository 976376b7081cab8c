/**
 * The newest frames of one log, encoded once and shared by all its followers. The tail is bounded; a follower that
 * falls behind reads from the database. With many followers, small commits are merged for a few milliseconds, so that
 * each follower costs one write per chunk instead of one per line.
 */
import { Wake } from '../base/async.ts';
import { limits } from './limits.ts';

interface Chunk {
  first_seq: number;
  last_seq: number;
  frames: Buffer;
}

export class Tail {
  /** The newest event that followers may send; -1 until it is known. */
  head = -1;
  closed = false;
  readonly agent_num: number;
  readonly #wakes = new Set<Wake>();
  #chunks: Chunk[] = [];
  #bytes = 0;
  #pending: Chunk[] = [];
  #pending_bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(agent_num: number) {
    this.agent_num = agent_num;
  }

  get followers(): number {
    return this.#wakes.size;
  }

  /** Adds a follower. Each new chunk notifies the returned `Wake`; pass it to `leave`. */
  join(): Wake {
    const wake = new Wake();
    this.#wakes.add(wake);
    return wake;
  }

  /** Removes a follower. Idempotent. */
  leave(wake: Wake): void {
    this.#wakes.delete(wake);
    if (this.#wakes.size === 0) clearTimeout(this.#timer);
  }

  /** Adds committed frames. They must follow those of the last call without a gap. */
  publish(chunk: Chunk): void {
    this.#pending.push(chunk);
    this.#pending_bytes += chunk.frames.length;
    if (
      this.#wakes.size < limits.tail_coalesce_from_followers ||
      this.#pending_bytes >= limits.tail_coalesce_bytes
    ) {
      this.#flush();
    } else {
      this.#timer ??= setTimeout(() => this.#flush(), limits.tail_coalesce_ms);
    }
  }

  /** The shared frames that begin right after `cursor`, if they are still in memory. */
  after(cursor: number): Chunk | undefined {
    for (let i = this.#chunks.length - 1; i >= 0; i--) {
      const chunk = this.#chunks[i]!;
      if (chunk.first_seq === cursor + 1) return chunk;
      if (chunk.last_seq <= cursor) return undefined;
    }
    return undefined;
  }

  /** Ends all followers. */
  close(): void {
    this.closed = true;
    clearTimeout(this.#timer);
    this.#wakeAll();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const pending = this.#pending;
    this.#pending = [];
    const [first] = pending;
    const last = pending.at(-1);
    if (!first || !last) return;
    const frames = pending.length === 1 ? first.frames : Buffer.concat(pending.map((chunk) => chunk.frames));
    this.#pending_bytes = 0;
    // A head that was read from the database may already include these commits: never move it backwards.
    this.head = Math.max(this.head, last.last_seq);
    this.#chunks.push({ first_seq: first.first_seq, last_seq: last.last_seq, frames });
    this.#bytes += frames.length;
    while (this.#bytes > limits.tail_ring_bytes_max && this.#chunks.length > 1) {
      this.#bytes -= this.#chunks.shift()!.frames.length;
    }
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#wakes) wake.notify();
  }
}
