/** A page's subscription to the events of one agent: which of them were delivered, and how many batches it has not acknowledged. */
import type { Frame, StreamState } from '../../client/client.ts';
import { bounds } from './bounds.ts';
import type { ToClient, ToHub } from './messages.ts';

export class Subscription {
  readonly id: number;
  readonly agent_id: string;
  /** How many events before the newest it begins, if it has no cursor yet. */
  readonly tail: number;
  /** Everything up to here was delivered; null: nothing yet, and it may begin anywhere. */
  cursor: number | null;
  /** It acknowledges nothing, so the stream continues without it. */
  is_parked = false;
  /** Its agent was deleted or is not readable. */
  has_ended = false;
  #unacked = 0;
  #was_connected = false;
  readonly #post: (message: ToClient) => void;

  constructor(
    { subscription, agent_id, after, tail }: Extract<ToHub, { type: 'subscribe' }>,
    post: (message: ToClient) => void,
  ) {
    this.id = subscription;
    this.agent_id = agent_id;
    this.tail = tail ?? 0;
    this.cursor = after ?? (tail === undefined ? 0 : null);
    this.#post = post;
  }

  get is_full(): boolean {
    return this.#unacked >= bounds.batches_unacked_max;
  }

  deliver(frames: Frame[], position: number): void {
    this.cursor = position;
    this.#unacked++;
    this.#post({ type: 'events', subscription: this.id, frames, position });
  }

  ack(): void {
    this.#unacked--;
  }

  setState(state: StreamState, next_attempt_at: number | null): void {
    // After the first connection, connecting again is reconnecting.
    const shown = state === 'connecting' && this.#was_connected ? 'reconnecting' : state;
    this.#was_connected ||= state === 'connected';
    this.#post({ type: 'state', subscription: this.id, state: shown, next_attempt_at });
  }

  end(how: { type: 'gone' } | { type: 'failed'; error: string }): void {
    this.has_ended = true;
    this.#post({ ...how, subscription: this.id });
  }
}
