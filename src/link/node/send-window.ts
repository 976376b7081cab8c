/**
 * A send window: limits the bytes in flight to the link's bandwidth-delay product and a little more, as measured. With
 * a smaller window, a link with a long delay would be idle at times; a larger one only lengthens the queue in front of
 * every live line.
 */
import { limits } from '../limits.ts';

interface Mark {
  /** Bytes sent when this message was sent, including the message. */
  total: number;
  /** Bytes known to have arrived at that time. */
  arrived: number;
  /** In ms of `performance.now()`. */
  at: number;
}

export class SendWindow {
  readonly #marks: Mark[] = [];
  #sent = 0;
  #arrived = 0;
  #bytes: number = limits.pull_window_bytes_min;
  #round_ms = Number.POSITIVE_INFINITY;

  /**
   * The maximum size of one message. It is small on a new link, so that even a link that keeps breaking makes progress.
   */
  get piece_bytes(): number {
    return Math.min(Math.max(this.#arrived, limits.pull_piece_bytes_min), limits.pull_piece_bytes);
  }

  /** Whether another message may be sent now. */
  isOpen(): boolean {
    return this.#sent - this.#arrived < this.#bytes;
  }

  /** Call it with the size of each message that was sent. */
  sent(bytes: number): void {
    if (bytes === 0) return;
    this.#sent += bytes;
    this.#marks.push({ total: this.#sent, arrived: this.#arrived, at: performance.now() });
  }

  /** Called when the peer reports that this many more bytes have arrived. */
  arrived(bytes: number): void {
    this.#arrived = Math.min(this.#arrived + bytes, this.#sent);
    let newest: Mark | null = null;
    while (this.#marks[0] && this.#marks[0].total <= this.#arrived) newest = this.#marks.shift()!;
    if (!newest) return;
    const took_ms = Math.max(performance.now() - newest.at, 0.1);
    // The shortest round trip is that of an idle link. The value grows with time, so that a slower route is noticed.
    this.#round_ms = Math.min(took_ms, this.#round_ms * 1.01);
    const bytes_per_ms = (this.#arrived - newest.arrived) / took_ms;
    const wanted = bytes_per_ms * (this.#round_ms + limits.pull_ahead_ms);
    this.#bytes = Math.min(Math.max(wanted, limits.pull_window_bytes_min), limits.pull_window_bytes_max);
  }
}
