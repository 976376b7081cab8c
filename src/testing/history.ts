/**
 * Follows an agent's log like a client, across lost connections and restarts, and checks that the events are complete, unique and
 * in order.
 */
import type { Client, Frame } from '../client/client.ts';

export class History {
  readonly frames: Frame[] = [];
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  constructor(client: Client, agent_id: string) {
    this.#done = this.#follow(client, agent_id);
  }

  async #follow(client: Client, agent_id: string): Promise<void> {
    const options = { backoff_ms: [20, 50, 100] };
    const args = { params: { agent_id }, signal: this.#stop.signal };
    for await (const frame of client.follow('followAgent', args, options)) this.frames.push(frame);
  }

  /** Numbered frames, without heartbeats. */
  get events(): Frame[] {
    return this.frames.filter((frame) => frame.event !== 'heartbeat');
  }

  /** The bytes of a stream, according to the events. */
  bytes(stream: 'stdout' | 'stderr'): Buffer {
    return Buffer.concat(
      this.events
        .filter((frame) => frame.event === 'output' && frame.data.stream === stream)
        .map(({ data }) => Buffer.from(data.data as string, data.encoding === 'base64' ? 'base64' : 'utf8')),
    );
  }

  /** The first missing, duplicate or misplaced event; null if there is none. */
  sequenceError(): string | null {
    let last = 0;
    for (const { id, data } of this.events) {
      if (Number(id) !== data.seq) return `id ${id} on event ${data.seq}`;
      if (data.seq !== last + 1) return `event ${data.seq} after ${last}`;
      last = data.seq as number;
    }
    return null;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }
}
