/** The items in order. An item's position never changes. Readers receive an immutable snapshot. */
import { bounds } from './bounds.ts';
import type { Item } from './items.ts';

export class ItemList {
  #items: Item[] = [];
  /** The size of each item. */
  #chars: number[] = [];
  #total_chars = 0;
  /** The number of oldest items that were dropped. */
  #dropped = 0;
  #copy: readonly Item[] | null = null;

  get dropped(): number {
    return this.#dropped;
  }

  /** The position after the last item. */
  get end(): number {
    return this.#dropped + this.#items.length;
  }

  get snapshot(): readonly Item[] {
    this.#copy ??= this.#items.slice();
    return this.#copy;
  }

  /** Returns the position of the item. `chars`: its size. */
  add(item: Item, chars: number): number {
    this.#items.push(item);
    this.#chars.push(chars);
    this.#total_chars += chars;
    this.#copy = null;
    const at = this.end - 1;
    this.#trim();
    return at;
  }

  /** Undefined for an item that was dropped. */
  get(at: number): Item | undefined {
    return this.#items[at - this.#dropped];
  }

  replace(at: number, item: Item, chars: number): void {
    const index = at - this.#dropped;
    if (index < 0) return;
    this.#items[index] = item;
    this.#total_chars += chars - this.#chars[index]!;
    this.#chars[index] = chars;
    this.#copy = null;
    this.#trim();
  }

  /** Drops a tenth more than necessary, so that it rarely has to run. */
  #trim(): void {
    if (this.#items.length <= bounds.items && this.#total_chars <= bounds.items_chars) return;
    let [drop, left] = [0, this.#total_chars];
    const last = this.#items.length - 1;
    while (
      drop < last &&
      (this.#items.length - drop > 0.9 * bounds.items || left > 0.9 * bounds.items_chars)
    ) {
      left -= this.#chars[drop]!;
      drop++;
    }
    this.#items.splice(0, drop);
    this.#chars.splice(0, drop);
    this.#dropped += drop;
    this.#total_chars = left;
  }
}
