/** Collects items for one animation frame, or until there are many, and sends them together. */
import { bounds } from './bounds.ts';

export class Batches<T> {
  readonly #send: (items: T[]) => void;
  #items: T[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sent_at = Number.NEGATIVE_INFINITY;

  constructor(send: (items: T[]) => void) {
    this.#send = send;
  }

  add(item: T): void {
    this.#items.push(item);
    if (this.#items.length >= bounds.batch_frames_max) {
      this.flush();
      return;
    }
    // After a pause, wait only for the items that arrived together.
    const wait_ms = Math.max(0, this.#sent_at + bounds.batch_ms - performance.now());
    this.#timer ??= setTimeout(() => this.flush(), wait_ms);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#items.length === 0) return;
    this.#sent_at = performance.now();
    this.#send(this.#items.splice(0));
  }

  drop(): void {
    this.#items = [];
    this.flush();
  }
}
