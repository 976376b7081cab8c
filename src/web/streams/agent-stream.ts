/**
 * The stream of one agent, shared by all its subscriptions. One connection reads from the position of the subscription that
 * is furthest behind; those ahead of it get no event twice. A subscription with an earlier position makes it reconnect
 * from there. So each subscription receives every event after its own position once and in order, even if connections
 * break.
 *
 * It reads only as fast as pages acknowledge batches. A page that acknowledges nothing delays the others for a moment; then
 * they continue without it, and the stream goes back once the page acknowledges again.
 */
import { type Client, type Frame, ReconnectSignal, type StreamState } from '../../client/client.ts';
import { Batches } from './batches.ts';
import { bounds } from './bounds.ts';
import type { Subscription } from './subscription.ts';

interface Entry {
  frame: Frame;
  /** The position after this event. */
  position: number;
}

export interface AgentStreamOptions {
  client: Client;
  agent_id: string;
  /** All subscriptions to this agent, including those that no stream serves now. */
  all: () => Iterable<Subscription>;
  /** Called when the stream cannot be read at all. */
  onFailure: (error: unknown) => void;
}

export class AgentStream {
  readonly #options: AgentStreamOptions;
  readonly #subscriptions = new Set<Subscription>();
  readonly #reconnect_signal = new ReconnectSignal();
  readonly #batches = new Batches<Entry>((entries) => this.#deliver(entries));
  #reading: AbortController | null = null;
  /** The connection's position; null if it began at the newest events and has received none. */
  #position: number | null = null;
  #tail = 0;
  #state: StreamState = 'connecting';
  #next_attempt_at: number | null = null;
  #wakeUp = () => {};

  constructor(options: AgentStreamOptions) {
    this.#options = options;
  }

  get is_empty(): boolean {
    return this.#subscriptions.size === 0;
  }

  has(subscription: Subscription): boolean {
    return this.#subscriptions.has(subscription);
  }

  join(subscription: Subscription): void {
    this.#batches.flush();
    subscription.is_parked = false;
    if (subscription.cursor === null && this.#position !== null) {
      subscription.cursor = Math.max(0, this.#position - subscription.tail);
    }
    this.#subscriptions.add(subscription);
    subscription.setState(this.#state, this.#next_attempt_at);
    if (this.#reading === null || this.#isBehind(subscription)) this.#open();
    this.#wakeUp();
  }

  /** Removes all other subscriptions. */
  removeAllExcept(remaining: readonly Subscription[]): void {
    this.#batches.flush();
    for (const subscription of this.#subscriptions)
      if (!remaining.includes(subscription)) this.#subscriptions.delete(subscription);
    this.#skip();
    this.#wakeUp();
  }

  ack(subscription: Subscription): void {
    subscription.ack();
    if (subscription.is_parked) {
      this.#batches.flush();
      subscription.is_parked = false;
      if (this.#isBehind(subscription)) this.#open();
    }
    this.#wakeUp();
  }

  reconnect(renew: boolean): void {
    this.#reconnect_signal.send(renew);
  }

  close(): void {
    this.#batches.flush();
    this.#reading?.abort();
    this.#subscriptions.clear();
    this.#wakeUp();
  }

  #isBehind({ cursor, tail }: Subscription): boolean {
    if (cursor === null) return tail > this.#tail;
    return this.#position === null || cursor < this.#position;
  }

  #open(): void {
    this.#reading?.abort();
    this.#wakeUp();
    const reading = new AbortController();
    this.#reading = reading;
    const awake = this.#awake();
    const cursors = awake.flatMap(({ cursor }) => cursor ?? []);
    this.#position = cursors.length > 0 ? Math.min(...cursors) : null;
    this.#tail = Math.max(0, ...awake.map(({ tail }) => tail));
    void this.#read(reading.signal);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { client, agent_id, onFailure } = this.#options;
    const query = this.#position === null ? { tail: this.#tail } : { after: this.#position };
    const onState = (state: StreamState, wait_ms?: number) => {
      // Reconnecting from another position does not change the state unless it fails.
      if (!signal.aborted && state !== 'connecting') this.#setState(state, wait_ms);
    };
    const args = { params: { agent_id }, query, signal };
    try {
      for await (const frame of client.follow('followAgent', args, {
        onState,
        reconnect_signal: this.#reconnect_signal,
      })) {
        if (signal.aborted) return;
        this.#take(frame);
        if (this.#isHeldUp()) await this.#room(signal);
      }
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
  }

  #take(frame: Frame): void {
    if (frame.id === null) return;
    this.#position = Number(frame.id);
    if (frame.data.type !== 'heartbeat') {
      this.#batches.add({ frame, position: this.#position });
      return;
    }
    this.#batches.flush();
    for (const subscription of this.#subscriptions) subscription.cursor ??= this.#position;
  }

  #deliver(entries: readonly Entry[]): void {
    const reset = entries.findIndex(isReset);
    if (reset !== -1) {
      this.#deliver(entries.slice(0, reset));
      this.#deliverReset(entries[reset]!);
      this.#deliver(entries.slice(reset + 1));
      return;
    }
    for (const subscription of this.#subscriptions) {
      if (subscription.is_parked) continue;
      const { cursor } = subscription;
      const missing = cursor === null ? entries : entries.filter(({ position }) => position > cursor);
      const last = missing.at(-1);
      if (last)
        subscription.deliver(
          missing.map(({ frame }) => frame),
          last.position,
        );
    }
  }

  /** The log became shorter. Every subscription that is past its new end gets the reset, including those not read now. */
  #deliverReset(reset: Entry): void {
    for (const subscription of this.#options.all()) {
      if (subscription.has_ended) continue;
      if (subscription.cursor === null || subscription.cursor > reset.position)
        subscription.deliver([reset.frame], reset.position);
    }
  }

  #awake(): Subscription[] {
    return [...this.#subscriptions].filter(({ is_parked }) => !is_parked);
  }

  /** The subscriptions that the next event would go to. */
  #next(): Subscription[] {
    const position = this.#position ?? 0;
    return this.#awake().filter(({ cursor }) => (cursor ?? 0) <= position);
  }

  /** Reconnects further ahead if no subscription needs the next events. */
  #skip(): void {
    if (this.#awake().length > 0 && this.#next().length === 0) this.#open();
  }

  #isHeldUp(): boolean {
    const front = this.#next();
    return front.length === 0 || front.some((subscription) => subscription.is_full);
  }

  async #room(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#isHeldUp()) {
      if (await this.#woken(bounds.stall_ms)) continue;
      const full = this.#next().filter((subscription) => subscription.is_full);
      if (full.length === this.#awake().length) continue;
      for (const subscription of full) subscription.is_parked = true;
      this.#skip();
    }
  }

  /** Whether it was woken up within that time. */
  async #woken(within_ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, within_ms, false);
    this.#wakeUp = () => resolve(true);
    const woken = await promise;
    clearTimeout(timer);
    return woken;
  }

  #setState(state: StreamState, wait_ms?: number): void {
    this.#state = state;
    this.#next_attempt_at = wait_ms === undefined ? null : Date.now() + wait_ms;
    for (const subscription of this.#subscriptions) subscription.setState(state, this.#next_attempt_at);
  }
}

function isReset({ frame }: Entry): boolean {
  return frame.data.type === 'error' && frame.data.code === 'reset';
}
