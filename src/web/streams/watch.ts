/** One page's interest in one agent: how far it was given the agent's events, and how much of that it has taken. */
import type { Frame, StreamState } from '../../client/client.ts';
import { bounds } from './bounds.ts';
import type { ToPage } from './messages.ts';

export class Watch {
  readonly id: number;
  readonly agent_id: string;
  /** How many events before the newest it begins, where it has no cursor yet. */
  readonly tail: number;
  /** Everything up to here was given; null: nothing yet, and any beginning is right. */
  cursor: number | null;
  /** It takes nothing, and others go on without it. */
  is_parked = false;
  /** Its agent is gone, or may not be read. */
  is_over = false;
  #untaken = 0;
  #was_connected = false;
  readonly #post: (message: ToPage) => void;

  constructor(
    {
      watch,
      agent_id,
      after,
      tail,
    }: { watch: number; agent_id: string; after: number | null; tail?: number | undefined },
    post: (message: ToPage) => void,
  ) {
    this.id = watch;
    this.agent_id = agent_id;
    this.tail = tail ?? 0;
    this.cursor = after ?? (tail === undefined ? 0 : null);
    this.#post = post;
  }

  get is_full(): boolean {
    return this.#untaken >= bounds.batches_untaken_max;
  }

  give(frames: Frame[], position: number): void {
    this.cursor = position;
    this.#untaken++;
    this.#post({ type: 'events', watch: this.id, frames, position });
  }

  taken(): void {
    this.#untaken--;
  }

  tell(state: StreamState, next_attempt_at: number | null): void {
    // What was connected once is not connecting for the first time.
    const told = state === 'connecting' && this.#was_connected ? 'reconnecting' : state;
    this.#was_connected ||= state === 'connected';
    this.#post({ type: 'state', watch: this.id, state: told, next_attempt_at });
  }

  end(how: { type: 'gone' } | { type: 'failed'; error: string }): void {
    this.is_over = true;
    this.#post({ ...how, watch: this.id });
  }
}
