/**
 * The node's end of the byte connection: serves reads in pieces, new ones before the rest of long ones, sessions in turn,
 * so that a live line never waits behind a backlog. What is on its way is bounded by what the link drains in a moment.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { sleep, Wake } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import {
  type ChunkSchema,
  type PullRequest,
  type PullResponse,
  PullResponseSchema,
  type Read,
  type RefusedSchema,
} from '../contract/gen/node_pb.ts';
import { streamNames } from '../domain/event.ts';
import type { Node } from '../domain/node.ts';
import { Problem } from '../domain/problem.ts';
import { Violation, whole } from '../link/wire.ts';
import { type StandingRead, StandingReads } from './standing.ts';
import { Window } from './window.ts';

interface Reading extends StandingRead {
  id: number;
  from: number;
  left: number;
  standing: boolean;
}

/** Says that a session may have grown; false when that is to be told by a wake. */
export type Grown = (session_id: string) => boolean;

/** Ends when the requests do, or throws when they are none. `watch` gets whom to tell that a session may have grown. */
export async function* servePull(
  node: Pick<Node, 'read'>,
  requests: AsyncIterable<PullRequest>,
  watch: (grown: Grown) => void,
): AsyncGenerator<PullResponse> {
  const fresh: Reading[] = [];
  const long: Reading[] = [];
  /** Of all messages: each is encoded before the next one is asked for. */
  const room = Buffer.allocUnsafeSlow(limits.pull_message_bytes + limits.pull_piece_bytes);
  const window = new Window();
  const wake = new Wake();
  let over = false;
  let failure: unknown = null;
  const standing = new StandingReads<Reading>((reading) => {
    fresh.push(reading);
    wake.notify();
  });
  watch((session_id) => !over && standing.wake(session_id));

  const listen = async () => {
    for await (const { reads, credit } of requests) {
      window.arrived(credit);
      for (const read of reads) {
        const reading = readingOf(read);
        if (!reading || fresh.length + long.length + standing.size >= limits.pull_reads_max)
          throw new Violation('not a read');
        fresh.push(reading);
        if (reading.standing) standing.add(reading);
      }
      wake.notify();
    }
  };
  void listen()
    .catch((error: unknown) => {
      failure = error;
    })
    .finally(() => {
      over = true;
      wake.notify();
    });

  let sent_at = Number.NEGATIVE_INFINITY;
  while (!over) {
    // Live lines that come one right after the other go together: a message costs more than what it holds.
    const only_live = long.length === 0 && fresh.every(({ standing }) => standing);
    if (only_live && performance.now() - sent_at < limits.pull_close_ms) await sleep(limits.pull_gather_ms);
    const response = await answer();
    if (!response) {
      await wake.wait();
      continue;
    }
    sent_at = performance.now();
    yield response;
  }
  if (failure) throw failure;

  /** As many small answers as are asked for now, or one large piece; null when nothing is, or no more may be sent. */
  async function answer(): Promise<PullResponse | null> {
    const chunks: MessageInitShape<typeof ChunkSchema>[] = [];
    const refused: MessageInitShape<typeof RefusedSchema>[] = [];
    let bytes = 0;
    const items = () => chunks.length + refused.length;
    while (window.isOpen() && bytes < limits.pull_message_bytes && items() < limits.pull_message_items) {
      const reading = fresh.shift() ?? (bytes === 0 ? long.shift() : undefined);
      if (!reading) break;
      const max = reading.replaced ? 0 : Math.min(reading.left, window.piece_bytes);
      const { id, session_id, stream, from } = reading;
      reading.again = false;
      try {
        const into = room.subarray(bytes, bytes + max);
        const data = (await node.read(session_id, stream, from, max, into)) as Uint8Array<ArrayBuffer>;
        reading.from += data.length;
        reading.left -= data.length;
        window.sent(data.length);
        bytes += data.length;
        const last = isOver(reading, data.length < max);
        if (!last && data.length === max) long.push(reading);
        else if (!last) standing.rest(reading);
        else if (reading.standing) standing.delete(reading);
        if (last || data.length > 0) chunks.push({ id, data, last });
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        const { kind, code, message } = error;
        refused.push({ id, refusal: { kind, code, message } });
        if (reading.standing) standing.delete(reading);
      }
    }
    if (items() === 0) return null;
    return create(PullResponseSchema, { chunks, refused });
  }
}

/** Null when it is none. */
function readingOf({ id, sessionId, stream, from, max, standing }: Read): Reading | null {
  const known = streamNames.find((name) => name === stream);
  if (!known) return null;
  const place = { id, session_id: sessionId, stream: known, from: whole(from), left: max };
  return { ...place, standing, rests: false, again: false, replaced: false };
}

function isOver({ left, standing, replaced }: Reading, at_end: boolean): boolean {
  return left === 0 || replaced || (at_end && !standing);
}
