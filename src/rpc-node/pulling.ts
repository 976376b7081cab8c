/**
 * The node's end of the byte connection: serves reads in pieces, new ones before the rest of long ones, sessions in turn,
 * so that a live line never waits behind a backlog. What is on its way is bounded by what the link drains in a moment.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Wake } from '../base/async.ts';
import { limits } from '../base/limits.ts';
import {
  type ChunkSchema,
  type PullRequest,
  type PullResponse,
  PullResponseSchema,
  type RefusedSchema,
} from '../contract/gen/node_pb.ts';
import { type StreamName, streamNames } from '../domain/event.ts';
import type { Node } from '../domain/node.ts';
import { Problem } from '../domain/problem.ts';
import { Violation, whole } from '../link/wire.ts';
import { Window } from './window.ts';

interface Reading {
  id: number;
  session_id: string;
  stream: StreamName;
  from: number;
  left: number;
}

/** Ends when the requests do, or throws when they are none. */
export async function* servePull(
  node: Pick<Node, 'read'>,
  requests: AsyncIterable<PullRequest>,
): AsyncGenerator<PullResponse> {
  const fresh: Reading[] = [];
  const long: Reading[] = [];
  const window = new Window();
  const wake = new Wake();
  let over = false;
  let failure: unknown = null;

  const listen = async () => {
    for await (const { reads, credit } of requests) {
      window.arrived(credit);
      for (const { id, sessionId, stream, from, max } of reads) {
        const known = streamNames.find((name) => name === stream);
        if (!known || fresh.length + long.length >= limits.pull_reads_max) throw new Violation('not a read');
        fresh.push({ id, session_id: sessionId, stream: known, from: whole(from), left: max });
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

  while (!over) {
    const response = await answer();
    if (response) yield response;
    else await wake.wait();
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
      const alone = fresh.length + long.length === 0;
      const piece = alone && bytes === 0 ? limits.link_frame_bytes : limits.pull_piece_bytes;
      const max = Math.min(reading.left, piece, window.piece_bytes);
      const { id, session_id, stream, from } = reading;
      try {
        const data = (await node.read(session_id, stream, from, max)) as Uint8Array<ArrayBuffer>;
        reading.from += data.length;
        reading.left -= data.length;
        const last = data.length < max || reading.left === 0;
        if (!last) long.push(reading);
        window.sent(data.length);
        bytes += data.length;
        chunks.push({ id, data, last });
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        const { kind, code, message } = error;
        refused.push({ id, refusal: { kind, code, message } });
      }
    }
    if (items() === 0) return null;
    return create(PullResponseSchema, { chunks, refused });
  }
}
