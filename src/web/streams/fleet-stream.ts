/**
 * The stream of all changed records, which keeps the lists of every page current. It has no history, so a page that may
 * have missed changes is asked to read its lists again: at the start, when the plane no longer knows the position, and
 * when a page did not acknowledge its batches. No page delays it.
 */
import { sleep } from '../../base/async.ts';
import { type Client, type Frame, ReconnectSignal, type StreamState } from '../../client/client.ts';
import { Batches } from './batches.ts';
import { bounds } from './bounds.ts';
import type { ToClient } from './messages.ts';

/** A page that receives the changes. */
export class FleetReader {
  readonly post: (message: ToClient) => void;
  #unacked = 0;
  #has_missed = false;

  constructor(post: (message: ToClient) => void) {
    this.post = post;
  }

  deliver(frames: Frame[]): void {
    this.#has_missed ||= this.#unacked >= bounds.fleet_batches_unacked_max;
    if (this.#has_missed) return;
    this.#unacked++;
    this.post({ type: 'changes', frames });
  }

  ack(): void {
    this.#unacked--;
    if (!this.#has_missed || this.#unacked > 0) return;
    this.#has_missed = false;
    this.post({ type: 'reload' });
  }
}

export interface FleetStreamOptions {
  client: Client;
  readers: () => Iterable<FleetReader>;
  /** Called when the stream cannot be read. Unless it is closed then, it is tried again later. */
  onFailure: (error: unknown) => void;
}

export class FleetStream {
  readonly #options: FleetStreamOptions;
  readonly #reconnect_signal = new ReconnectSignal();
  readonly #stop = new AbortController();
  readonly #batches = new Batches<Frame>((frames) => {
    for (const reader of this.#options.readers()) reader.deliver(frames);
  });
  #state: StreamState = 'connecting';
  /** By the clock of the machine, unlike timers, which stop while it is asleep. */
  #heard_at = Date.now();
  /** A broken connection would resume where it broke. */
  #has_position = false;

  constructor(options: FleetStreamOptions) {
    this.#options = options;
    void this.#read();
  }

  /** A heartbeat is missing. */
  get is_overdue(): boolean {
    return Date.now() - this.#heard_at > bounds.overdue_ms;
  }

  /** Sends the current state to a new page. */
  sendCurrentState({ post }: FleetReader): void {
    this.#batches.flush();
    post({ type: 'fleet_state', state: this.#state });
    if (this.#state === 'connected') post({ type: 'reload' });
    // What it missed may be older than the position from which the stream continues.
    else this.#has_position = false;
  }

  reconnect(renew: boolean): void {
    this.#reconnect_signal.send(renew);
  }

  close(): void {
    this.#stop.abort();
    this.#batches.drop();
  }

  async #read(): Promise<void> {
    const { client, onFailure } = this.#options;
    const { signal } = this.#stop;
    const onState = (state: StreamState) => this.#setState(state);
    try {
      for await (const frame of client.follow(
        'followAll',
        { signal },
        { onState, reconnect_signal: this.#reconnect_signal },
      )) {
        this.#heard_at = Date.now();
        this.#has_position ||= frame.id !== null;
        if (frame.data.type === 'error' && frame.data.code === 'reset') this.#reload();
        else if (frame.data.type !== 'heartbeat') this.#batches.add(frame);
      }
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      await this.#retry();
    }
  }

  /** The error may have come from a proxy, and nothing else would keep the lists current. */
  async #retry(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#setState('reconnecting');
    const wake = new AbortController();
    const stopListening = this.#reconnect_signal.listen(() => wake.abort());
    await sleep(bounds.fleet_retry_ms, AbortSignal.any([this.#stop.signal, wake.signal]));
    stopListening();
    this.#has_position = false;
    if (!this.#stop.signal.aborted) void this.#read();
  }

  #setState(state: StreamState): void {
    if (this.#stop.signal.aborted) return;
    this.#state = state;
    if (state === 'connected') this.#heard_at = Date.now();
    for (const { post } of this.#options.readers()) post({ type: 'fleet_state', state });
    if (state === 'connected' && !this.#has_position) this.#reload();
  }

  #reload(): void {
    this.#batches.drop();
    for (const { post } of this.#options.readers()) post({ type: 'reload' });
  }
}
