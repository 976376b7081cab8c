/**
 * How many bytes may be on their way at once: what the link drains in its own round trip and a moment more, by its measured
 * rate. Less leaves a long link idle, more only lengthens the queue that every live line stands in.
 */
import { limits } from '../base/limits.ts';

interface Mark {
  /** All bytes sent when this one was, itself included. */
  total: number;
  /** All bytes known to have arrived then. */
  arrived: number;
  at: number;
}

export class Window {
  readonly #now: () => number;
  readonly #marks: Mark[] = [];
  #sent = 0;
  #arrived = 0;
  #bytes: number = limits.pull_window_bytes_min;
  #round_ms = Number.POSITIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How much may be sent as one message: small on a new link, so that also one that never lasts brings something over. */
  get piece_bytes(): number {
    return Math.min(Math.max(this.#arrived, limits.pull_piece_bytes_min), limits.pull_piece_bytes);
  }

  isOpen(): boolean {
    return this.#sent - this.#arrived < this.#bytes;
  }

  sent(bytes: number): void {
    if (bytes === 0) return;
    this.#sent += bytes;
    this.#marks.push({ total: this.#sent, arrived: this.#arrived, at: this.#now() });
  }

  /** The peer says that so many more bytes arrived. */
  arrived(bytes: number): void {
    this.#arrived = Math.min(this.#arrived + bytes, this.#sent);
    let newest: Mark | null = null;
    while (this.#marks[0] && this.#marks[0].total <= this.#arrived) newest = this.#marks.shift()!;
    if (!newest) return;
    const took_ms = Math.max(this.#now() - newest.at, 0.1);
    // The shortest round is the link's own; it ages, so that a link that became longer is noticed.
    this.#round_ms = Math.min(took_ms, this.#round_ms * 1.01);
    const bytes_per_ms = (this.#arrived - newest.arrived) / took_ms;
    const wanted = bytes_per_ms * (this.#round_ms + limits.pull_ahead_ms);
    this.#bytes = Math.min(Math.max(wanted, limits.pull_window_bytes_min), limits.pull_window_bytes_max);
  }
}
