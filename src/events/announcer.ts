/**
 * Gathers what changes all the time, and announces it to followers of the fleet feed: one query and one frame for all that
 * changed meanwhile. Nothing is stored.
 */
import type { Logger } from '../base/log.ts';
import type { Reader, Store } from '../store/store.ts';
import type { Announced, Feed } from './feed.ts';
import { limits } from './limits.ts';

export interface AnnouncerOptions {
  store: Store;
  feed: Pick<Feed, 'announce' | 'hasFollowers'>;
  log: Logger;
  /** The kind of the frames, and the field with the list of records. */
  kind: string;
  field: string;
  /** How long to gather before an announcement. */
  delay_ms: number;
  /** Reads what to announce about the rows with these numbers. Some may be deleted by then. */
  find: (reader: Reader, nums: readonly number[]) => Promise<Announced[]>;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #changed = new Set<number>();
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** `num`: of a row that has changed. Call it after the commit. */
  add(num: number): void {
    if (this.#closed) return;
    this.#changed.add(num);
    this.#timer ??= this.#schedule(this.#options.delay_ms);
  }

  /** Announces what was added since the last call. If it fails, the next call announces it. Public for tests. */
  async announce(): Promise<void> {
    const nums = [...this.#changed];
    this.#changed.clear();
    const { store, feed, kind, field, find } = this.#options;
    if (nums.length === 0 || !feed.hasFollowers) return;
    const announced = await store
      .read((reader) => find(reader, nums))
      .catch((error: unknown) => {
        for (const num of nums) this.#changed.add(num);
        throw error;
      });
    feed.announce(kind, field, announced);
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #schedule(delay_ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timer = null;
      this.announce().catch((err: unknown) => {
        if (this.#closed) return;
        const { log, kind } = this.#options;
        log.warn({ err, kind }, 'changes could not be announced');
        this.#timer ??= this.#schedule(limits.announce_retry_ms);
      });
    }, delay_ms).unref();
  }
}
