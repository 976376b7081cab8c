/**
 * The stream of everything that changed, for all pages: lists live from it. It begins live, so whoever could have missed
 * something is told to load its lists again: at the beginning, when the plane does not know the position any more, and
 * when a page did not take what it was sent. No page holds it up.
 */
import { type Client, type Frame, Nudges, type StreamState } from '../../client/client.ts';
import { Batches } from './batches.ts';
import { bounds } from './bounds.ts';
import type { ToPage } from './messages.ts';

/** One page, as the reader of changes. */
export class FleetReader {
  readonly post: (message: ToPage) => void;
  #untaken = 0;
  #has_missed = false;

  constructor(post: (message: ToPage) => void) {
    this.post = post;
  }

  give(frames: Frame[]): void {
    this.#has_missed ||= this.#untaken >= bounds.fleet_batches_untaken_max;
    if (this.#has_missed) return;
    this.#untaken++;
    this.post({ type: 'changes', frames });
  }

  taken(): void {
    this.#untaken--;
    if (!this.#has_missed || this.#untaken > 0) return;
    this.#has_missed = false;
    this.post({ type: 'reload' });
  }
}

export interface FleetStreamOptions {
  client: Client;
  readers: () => Iterable<FleetReader>;
  /** It cannot be read at all. */
  onFailure: (error: unknown) => void;
}

export class FleetStream {
  readonly #options: FleetStreamOptions;
  readonly #nudges = new Nudges();
  readonly #stop = new AbortController();
  readonly #batches = new Batches<Frame>((frames) => {
    for (const reader of this.#options.readers()) reader.give(frames);
  });
  #state: StreamState = 'connecting';
  /** It would be resumed where it broke. */
  #has_position = false;

  constructor(options: FleetStreamOptions) {
    this.#options = options;
    void this.#read();
  }

  /** Tells somebody new how things stand. */
  greet({ post }: FleetReader): void {
    this.#batches.flush();
    post({ type: 'fleet_state', state: this.#state });
    if (this.#state === 'connected') post({ type: 'reload' });
  }

  nudge(renew: boolean): void {
    this.#nudges.nudge(renew);
  }

  close(): void {
    this.#stop.abort();
    this.#batches.drop();
  }

  async #read(): Promise<void> {
    const { client, onFailure } = this.#options;
    const { signal } = this.#stop;
    const onState = (state: StreamState) => this.#tell(state);
    try {
      for await (const frame of client.follow('followAll', { signal }, { onState, nudges: this.#nudges })) {
        this.#has_position ||= frame.id !== null;
        if (frame.data.type === 'error' && frame.data.code === 'reset') this.#reload();
        else if (frame.data.type !== 'heartbeat') this.#batches.add(frame);
      }
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
  }

  #tell(state: StreamState): void {
    if (this.#stop.signal.aborted) return;
    this.#state = state;
    for (const { post } of this.#options.readers()) post({ type: 'fleet_state', state });
    if (state === 'connected' && !this.#has_position) this.#reload();
  }

  #reload(): void {
    this.#batches.drop();
    for (const { post } of this.#options.readers()) post({ type: 'reload' });
  }
}
