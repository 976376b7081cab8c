/**
 * The newest frames of one log, encoded once and shared by all its followers. The tail is bounded; a follower that
 * falls behind reads from the database. After each chunk, the tail collects commits for twice the time that sending the
 * chunk took, within a limit. So a thousand followers cost one write per chunk instead of one per line, while a few
 * followers get each commit at once.
 */
import { limits } from './limits.ts';

export interface Chunk {
  first_seq: number;
  last_seq: number;
  frames: Buffer;
}

/** A follower, as its tail sees it. */
export interface TailFollower {
  /** Called with each new chunk, in order. The follower sends it at once, or reads it later with `after`. */
  offer(chunk: Chunk): void;
  /** The tail was closed. */
  end(): void;
}

export class Tail {
  /** The newest event that followers may send; -1 until it is known. */
  head = -1;
  closed = false;
  readonly agent_num: number;
  readonly #followers = new Set<TailFollower>();
  #chunks: Chunk[] = [];
  #bytes = 0;
  #pending: Chunk[] = [];
  #pending_bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Until this time (`performance.now()`), commits are collected. */
  #collect_until_ms = 0;

  constructor(agent_num: number) {
    this.agent_num = agent_num;
  }

  get followers(): number {
    return this.#followers.size;
  }

  join(follower: TailFollower): void {
    this.#followers.add(follower);
  }

  /** Removes a follower. Idempotent. */
  leave(follower: TailFollower): void {
    this.#followers.delete(follower);
    if (this.#followers.size === 0) this.#stopTimer();
  }

  /**
   * Adds committed frames. If they do not continue those of the last call, because another process wrote the events between
   * them, followers read the events from the database. Ignores frames that are reported after later ones: by then, the
   * followers find their events in the database.
   */
  publish(chunk: Chunk): void {
    const last = this.#pending.at(-1) ?? this.#chunks.at(-1);
    if (last && chunk.first_seq <= last.last_seq) return;
    if (last && chunk.first_seq > last.last_seq + 1) this.#flush();
    this.#pending.push(chunk);
    this.#pending_bytes += chunk.frames.length;
    const wait_ms = this.#collect_until_ms - performance.now();
    // A timer takes a millisecond at least.
    if (wait_ms < 1 || this.#pending_bytes >= limits.tail_coalesce_bytes) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), wait_ms);
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
    this.#stopTimer();
    for (const follower of this.#followers) follower.end();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #flush(): void {
    this.#stopTimer();
    const pending = this.#pending;
    this.#pending = [];
    const [first] = pending;
    const last = pending.at(-1);
    if (!first || !last) return;
    const frames = pending.length === 1 ? first.frames : Buffer.concat(pending.map((chunk) => chunk.frames));
    this.#pending_bytes = 0;
    // A head that was read from the database may already include these commits: never move it backwards.
    this.head = Math.max(this.head, last.last_seq);
    const chunk = { first_seq: first.first_seq, last_seq: last.last_seq, frames };
    this.#chunks.push(chunk);
    this.#bytes += frames.length;
    while (this.#bytes > limits.tail_ring_bytes_max && this.#chunks.length > 1) {
      this.#bytes -= this.#chunks.shift()!.frames.length;
    }
    const begun_ms = performance.now();
    for (const follower of this.#followers) follower.offer(chunk);
    const end_ms = performance.now();
    const pause_ms = (end_ms - begun_ms) * limits.tail_pause_factor;
    this.#collect_until_ms = end_ms + Math.min(pause_ms, limits.tail_pause_ms_max);
  }
}
