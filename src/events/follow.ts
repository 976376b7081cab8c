/**
 * Follows one agent's log: replays what a client has not seen, then sends new events as they arrive.
 *
 *     start ──▶ replay ──(the shared tail continues at the cursor)──▶ live
 *                 ▲                                                    │
 *                 └────────(fell behind what the tail holds)◀──────────┘
 *
 * Both states end when the client disconnects, or when the agent is deleted.
 */
import { Wake } from '../base/async.ts';
import type { Clock } from '../base/clock.ts';
import { problems } from '../core/problem.ts';
import { headOf } from '../store/event-rows/heads.ts';
import type { Store } from '../store/store.ts';
import type { AgentRef } from './agent-ref.ts';
import { connectionError, frameRecord, frameType, heartbeatFrame, retryFrame } from './frame.ts';
import type { History } from './history.ts';
import type { Position } from './position.ts';
import type { Chunk, Tail, TailFollower } from './tail.ts';

export interface FollowDeps {
  store: Pick<Store, 'read'>;
  history: History;
  clock: Clock;
  heartbeat_ms: number;
}

/**
 * Sends frames to a client that has been sent everything before them. Returns false, and sends nothing, if the client is
 * slow or gone.
 */
export type LiveWriter = (frames: Buffer) => boolean;

export class Follower implements TailFollower {
  readonly #deps: FollowDeps;
  readonly #agent: AgentRef;
  readonly #tail: Tail;
  readonly #write: LiveWriter;
  readonly #wake = new Wake();
  /** Whether `frames` waits at the end of the log, so that everything that it yielded has been sent. */
  #is_live = false;
  /** The newest event that the client has. */
  #cursor = 0;
  /** When the next heartbeat is due, in ms of `performance.now()`. */
  #heartbeat_at: number;

  constructor(deps: FollowDeps, agent: AgentRef, tail: Tail, write: LiveWriter) {
    this.#deps = deps;
    this.#agent = agent;
    this.#tail = tail;
    this.#write = write;
    this.#heartbeat_at = performance.now() + deps.heartbeat_ms;
  }

  /**
   * A live client gets the chunk here: waking the generator and its timer for each chunk took a third of the processor time
   * of a thousand clients. The cursor moves with each write, so `frames` continues after it.
   */
  offer({ first_seq, last_seq, frames }: Chunk): void {
    if (this.#is_live && first_seq === this.#cursor + 1 && this.#write(frames)) this.#cursor = last_seq;
    else this.#wake.notify();
  }

  end(): void {
    this.#wake.notify();
  }

  /**
   * Yields SSE frames from `position` on until `signal` aborts or the agent is deleted, except for those that it passes to
   * the `LiveWriter`. Each event appears once and in order; `events_truncated` and `reset` frames report gaps. Throws
   * `agent not found` before the first frame.
   */
  async *frames(position: Position, signal: AbortSignal): AsyncGenerator<Buffer> {
    const tail = this.#tail;
    tail.join(this);
    try {
      const head = await this.#head();
      // Only after the read, because the tail's head may have risen meanwhile.
      tail.head = Math.max(tail.head, head);
      yield retryFrame;
      this.#cursor = start(position, tail.head);
      if (this.#cursor > tail.head) {
        this.#cursor = tail.head;
        const error = 'the position is newer than the log; continuing after its newest event';
        yield this.#error(this.#cursor, { code: 'reset', error, head: this.#cursor });
      }
      while (!signal.aborted && !tail.closed) {
        if (this.#isHeartbeatDue()) yield this.#heartbeat();
        const shared = tail.after(this.#cursor);
        if (shared) {
          yield shared.frames;
          this.#cursor = shared.last_seq;
        } else if (this.#cursor < tail.head) yield* this.#replay(signal);
        else {
          this.#is_live = true;
          await this.#wake.wait(this.#heartbeat_at - performance.now(), signal);
          this.#is_live = false;
        }
      }
    } catch (error) {
      // Reads fail once the agent is deleted. The stream then ends without an error.
      if (!tail.closed) throw error;
    } finally {
      tail.leave(this);
    }
  }

  /** Reads from the store until the tail can continue, another frame is due, or the head is reached. */
  async *#replay(signal: AbortSignal): AsyncGenerator<Buffer> {
    const tail = this.#tail;
    const { head } = tail;
    const isInterrupted = () =>
      signal.aborted || tail.after(this.#cursor) !== undefined || this.#isHeartbeatDue();
    for await (const part of this.#deps.history.after(this.#agent, this.#cursor, () => tail.head)) {
      if (part.first_seq > this.#cursor + 1 && !reportsGap(part.frames))
        yield this.#truncated(part.first_seq);
      yield part.frames;
      this.#cursor = part.last_seq;
      if (isInterrupted()) return;
    }
    // Retention deleted everything up to `head` since this pass began.
    if (this.#cursor < head && !isInterrupted()) {
      this.#cursor = head;
      yield this.#truncated(this.#cursor + 1);
    }
  }

  #isHeartbeatDue(): boolean {
    return performance.now() >= this.#heartbeat_at;
  }

  #heartbeat(): Buffer {
    this.#heartbeat_at = performance.now() + this.#deps.heartbeat_ms;
    return heartbeatFrame(this.#cursor, this.#deps.clock.now());
  }

  #head(): Promise<number> {
    return this.#deps.store.read(async (reader) => {
      const head = await headOf(reader, this.#agent.num);
      if (!head) throw problems.agentNotFound();
      return head.last_seq;
    });
  }

  #truncated(first_available: number): Buffer {
    const error = `events before ${first_available} are no longer kept`;
    return this.#error(first_available - 1, { code: 'events_truncated', error, first_available });
  }

  #error(position: number, fields: { code: string; error: string; [detail: string]: unknown }): Buffer {
    return connectionError(position, this.#deps.clock.now(), fields, this.#agent.id);
  }
}

function start(position: Position, head: number): number {
  if (position === 'start') return 0;
  return 'after' in position ? position.after : Math.max(0, head - position.tail);
}

/** Whether frames begin with a stored `log_gap` event, which already reports the gap after a restore. */
function reportsGap(frames: Buffer): boolean {
  const first = frames.subarray(0, frames.indexOf('\n\n') + 2);
  return frameType(first) === 'error' && frameRecord(first).code === 'log_gap';
}
