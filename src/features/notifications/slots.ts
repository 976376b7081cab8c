/**
 * Limits the number of concurrent tasks, in total and per key, so that slow tasks of one key do not delay those of others.
 */
export class Slots {
  readonly #all: number;
  readonly #each: number;
  readonly #running = new Map<string, number>();
  #count = 0;
  /** Waiting tasks in the order of the calls. */
  readonly #waiting: { key: string; start: () => void }[] = [];

  constructor(all: number, each: number) {
    this.#all = all;
    this.#each = each;
  }

  /** Waits for a free slot, then runs the task. Rejects like the task. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      this.#waiting.push({ key, start });
      this.#next();
    });
    try {
      return await task();
    } finally {
      this.#count -= 1;
      const left = this.#running.get(key)! - 1;
      if (left === 0) this.#running.delete(key);
      else this.#running.set(key, left);
      this.#next();
    }
  }

  #next(): void {
    while (this.#count < this.#all) {
      const at = this.#waiting.findIndex(({ key }) => (this.#running.get(key) ?? 0) < this.#each);
      const [next] = at === -1 ? [] : this.#waiting.splice(at, 1);
      if (!next) return;
      this.#count += 1;
      this.#running.set(next.key, (this.#running.get(next.key) ?? 0) + 1);
      next.start();
    }
  }
}
