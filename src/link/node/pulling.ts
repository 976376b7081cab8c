/**
 * The node's end of the byte connection. It answers reads in chunks. New reads come before the rest of long ones, and
 * sessions take turns, so that a live line never waits behind a backlog. The bytes in flight are limited to what the
 * link drains in a short time.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { sleep, Wake } from '../../base/async.ts';
import type { Logger } from '../../base/log.ts';
import { streamNames } from '../../core/event.ts';
import type { Node } from '../../core/node.ts';
import { Problem, problems } from '../../core/problem.ts';
import { limits } from '../limits.ts';
import {
  type ChunkSchema,
  type PullRequest,
  type PullResponse,
  PullResponseSchema,
  type Read,
  type RefusedSchema,
} from '../proto/node_pb.ts';
import { ProtocolError, refusalToWire, safeInteger } from '../wire.ts';
import { type LongPollRead, LongPollReads } from './long-poll-reads.ts';
import { SendWindow } from './send-window.ts';

interface Reading extends LongPollRead {
  id: number;
  from: number;
  left: number;
  /** Stays open at the end of its stream. */
  long_poll: boolean;
}

/** Reports that a session may have grown; returns false if a wake must report it. */
export type Grown = (session_id: string) => boolean;

/**
 * Answers the plane's reads until its requests end; throws a ProtocolError if a request is malformed. `watch` receives
 * the function to call when a session may have grown.
 */
export async function* servePull(
  node: Pick<Node, 'read'>,
  requests: AsyncIterable<PullRequest>,
  { watch, log }: { watch(grown: Grown): void; log: Logger },
): AsyncGenerator<PullResponse> {
  const pull = new Pull(node, log);
  watch((session_id) => pull.grown(session_id));
  pull.listen(requests);
  yield* pull.responses();
}

class Pull {
  readonly #node: Pick<Node, 'read'>;
  readonly #log: Logger;
  /** The streams whose last read failed, each with its session. Logged once. */
  readonly #unreadable = new Set<string>();
  /** New reads, and long-poll reads whose stream may have grown. */
  readonly #fresh: Reading[] = [];
  /** The rest of long reads. */
  readonly #long: Reading[] = [];
  /** One buffer for all messages: each is encoded before the next one is requested. */
  readonly #buffer = Buffer.allocUnsafeSlow(limits.pull_message_bytes + limits.pull_piece_bytes);
  readonly #window = new SendWindow();
  readonly #wake = new Wake();
  readonly #long_poll = new LongPollReads<Reading>((reading) => {
    this.#fresh.push(reading);
    this.#wake.notify();
  });
  #over = false;
  #failure: unknown = null;

  constructor(node: Pick<Node, 'read'>, log: Logger) {
    this.#node = node;
    this.#log = log;
  }

  /** See `Grown`. */
  grown(session_id: string): boolean {
    return !this.#over && this.#long_poll.wake(session_id);
  }

  /** Takes requests in the background, until they end or one is malformed. */
  listen(requests: AsyncIterable<PullRequest>): void {
    void this.#take(requests)
      .catch((error: unknown) => {
        this.#failure = error;
      })
      .finally(() => {
        this.#over = true;
        this.#wake.notify();
      });
  }

  async #take(requests: AsyncIterable<PullRequest>): Promise<void> {
    for await (const { reads, credit } of requests) {
      this.#window.arrived(credit);
      for (const read of reads) {
        const reading = readingOf(read);
        const open = this.#fresh.length + this.#long.length + this.#long_poll.size;
        if (!reading || open >= limits.pull_reads_max)
          throw new ProtocolError('a malformed read, or too many reads');
        this.#fresh.push(reading);
        if (reading.long_poll) this.#long_poll.add(reading);
      }
      this.#wake.notify();
    }
  }

  async *responses(): AsyncGenerator<PullResponse> {
    let sent_at = Number.NEGATIVE_INFINITY;
    while (!this.#over) {
      // Live lines in quick succession are sent together, because a message costs more than its contents.
      const only_live = this.#long.length === 0 && this.#fresh.every(({ long_poll }) => long_poll);
      if (only_live && performance.now() - sent_at < limits.pull_close_ms) {
        await sleep(limits.pull_gather_ms);
      }
      const response = await this.#answer();
      if (!response) {
        await this.#wake.wait();
        continue;
      }
      sent_at = performance.now();
      yield response;
    }
    if (this.#failure) throw this.#failure;
  }

  /** As many small answers as are pending, or one large chunk; null if none exists, or no more may be sent. */
  async #answer(): Promise<PullResponse | null> {
    const chunks: MessageInitShape<typeof ChunkSchema>[] = [];
    const refused: MessageInitShape<typeof RefusedSchema>[] = [];
    let bytes = 0;
    const items = () => chunks.length + refused.length;
    while (
      this.#window.isOpen() &&
      bytes < limits.pull_message_bytes &&
      items() < limits.pull_message_items
    ) {
      const reading = this.#fresh.shift() ?? (bytes === 0 ? this.#long.shift() : undefined);
      if (!reading) break;
      const max = reading.replaced ? 0 : Math.min(reading.left, this.#window.piece_bytes);
      const { id, session_id, stream, from } = reading;
      reading.again = false;
      try {
        const into = this.#buffer.subarray(bytes, bytes + max);
        const data = (await this.#node.read(session_id, stream, from, max, into)) as Uint8Array<ArrayBuffer>;
        this.#unreadable.delete(`${session_id} ${stream}`);
        reading.from += data.length;
        reading.left -= data.length;
        this.#window.sent(data.length);
        bytes += data.length;
        const last = isOver(reading, data.length < max);
        if (!last && data.length === max) this.#long.push(reading);
        else if (!last) this.#long_poll.setIdle(reading);
        else if (reading.long_poll) this.#long_poll.delete(reading);
        if (last || data.length > 0) chunks.push({ id, data, last });
      } catch (error) {
        refused.push({ id, refusal: refusalToWire(this.#problemOf(error, reading)) });
        if (reading.long_poll) this.#long_poll.delete(reading);
      }
    }
    if (items() === 0) return null;
    return create(PullResponseSchema, { chunks, refused });
  }

  /** A spool that cannot be read must not end the link, which all sessions share. */
  #problemOf(error: unknown, { session_id, stream }: Reading): Problem {
    if (error instanceof Problem) return error;
    const key = `${session_id} ${stream}`;
    if (!this.#unreadable.has(key)) this.#log.error({ session_id, stream, err: error }, 'cannot read output');
    this.#unreadable.add(key);
    return problems.outputUnreadable();
  }
}

/** Null if the request is malformed. */
function readingOf(read: Read): Reading | null {
  const { id, sessionId, stream, from, max } = read;
  const known = streamNames.find((name) => name === stream);
  if (!known) return null;
  const range = { id, session_id: sessionId, stream: known, from: safeInteger(from), left: max };
  return { ...range, long_poll: read.longPoll, idle: false, again: false, replaced: false };
}

function isOver({ left, long_poll, replaced }: Reading, at_end: boolean): boolean {
  return left === 0 || replaced || (at_end && !long_poll);
}
