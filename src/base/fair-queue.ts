/** A queue that shares turns fairly, so that slow tasks of one owner do not block those of others. */

export interface FairQueueLimits {
  /** The maximum number of running tasks, in total. */
  running: number;
  running_per_owner: number;
  running_per_resource: number;
  /** The maximum number of waiting tasks, in total. */
  waiting: number;
  waiting_per_owner: number;
  waiting_per_resource: number;
}

export interface TaskKey {
  /** The id of the user who owns the task. */
  owner: string;
  /** The folder or repository that the task uses. */
  resource: string;
}

interface Share {
  running: number;
  waiting: number;
  /** The number of the last turn it was given. */
  served: number;
}

interface Waiting {
  owner: Share;
  resource: Share;
  start(): void;
}

/**
 * Limits the number of running tasks: in total, for each owner and for each resource. A free turn goes to the owner
 * with the fewest running tasks. Ties go to the owner, and then to the resource, that was served least recently.
 */
export class FairQueue {
  readonly #limits: FairQueueLimits;
  readonly #createFullError: () => Error;
  readonly #owners = new Map<string, Share>();
  readonly #resources = new Map<string, Share>();
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #turns = 0;

  /** `createFullError` creates the error for a task that exceeds a waiting limit. */
  constructor(limits: FairQueueLimits, createFullError: () => Error) {
    this.#limits = limits;
    this.#createFullError = createFullError;
  }

  /**
   * Runs the task when its turn comes and returns its result. Throws the task's own error, or that of `createFullError` if
   * too many tasks are already waiting. If `signal` aborts before its turn, the task is skipped, and the signal's reason is
   * thrown.
   */
  async run<T>({ owner, resource }: TaskKey, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const shares = { owner: shareOf(this.#owners, owner), resource: shareOf(this.#resources, resource) };
    try {
      await this.#wait(shares, signal);
      try {
        return await work();
      } finally {
        this.#running--;
        shares.owner.running--;
        shares.resource.running--;
        this.#startNext();
      }
    } finally {
      forget(this.#owners, owner);
      forget(this.#resources, resource);
    }
  }

  #wait(shares: Pick<Waiting, 'owner' | 'resource'>, signal: AbortSignal | undefined): Promise<void> {
    const { waiting, waiting_per_owner, waiting_per_resource } = this.#limits;
    const { owner, resource } = shares;
    // There is no need to check the queue, because a waiting task that could run now would already be running.
    if (this.#mayRun(shares)) {
      this.#begin(shares);
      return Promise.resolve();
    }
    const is_full =
      this.#waiting.length >= waiting ||
      owner.waiting >= waiting_per_owner ||
      resource.waiting >= waiting_per_resource;
    if (is_full) return Promise.reject(this.#createFullError());
    owner.waiting++;
    resource.waiting++;
    return new Promise((resolve, reject) => {
      const skip = () => {
        this.#remove(one);
        reject(signal!.reason);
      };
      const start = () => {
        signal?.removeEventListener('abort', skip);
        resolve();
      };
      const one = { ...shares, start };
      this.#waiting.push(one);
      signal?.addEventListener('abort', skip, { once: true });
    });
  }

  #remove(one: Waiting): void {
    this.#waiting.splice(this.#waiting.indexOf(one), 1);
    one.owner.waiting--;
    one.resource.waiting--;
  }

  #startNext(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      this.#remove(next);
      this.#begin(next);
      next.start();
    }
  }

  #next(): Waiting | undefined {
    let best: Waiting | undefined;
    for (const one of this.#waiting) {
      if (this.#mayRun(one) && (!best || isBefore(one, best))) best = one;
    }
    return best;
  }

  #mayRun({ owner, resource }: Pick<Waiting, 'owner' | 'resource'>): boolean {
    const { running, running_per_owner, running_per_resource } = this.#limits;
    return (
      this.#running < running && owner.running < running_per_owner && resource.running < running_per_resource
    );
  }

  #begin({ owner, resource }: Pick<Waiting, 'owner' | 'resource'>): void {
    this.#running++;
    owner.running++;
    resource.running++;
    this.#turns++;
    owner.served = this.#turns;
    resource.served = this.#turns;
  }
}

function isBefore(one: Waiting, other: Waiting): boolean {
  return (
    (one.owner.running - other.owner.running ||
      one.owner.served - other.owner.served ||
      one.resource.served - other.resource.served) < 0
  );
}

function shareOf(shares: Map<string, Share>, name: string): Share {
  const known = shares.get(name);
  if (known) return known;
  const created = { running: 0, waiting: 0, served: 0 };
  shares.set(name, created);
  return created;
}

function forget(shares: Map<string, Share>, name: string): void {
  const share = shares.get(name);
  if (share && share.running === 0 && share.waiting === 0) shares.delete(name);
}
