/**
 * Answers commits in the order in which they were sent. A transaction that saw the changes of another one sends its
 * commit later, because it waited for the answer to a statement in between. So effects are answered after their causes,
 * although their commits are on different connections.
 */
export interface Place {
  /** Resolves when all earlier places were left. */
  readonly reached: Promise<void>;
  leave(): void;
}

export class CommitOrder {
  #last: Promise<void> = Promise.resolve();

  /** Call this right before the commit is sent. The caller must leave the place, whatever happens. */
  enter(): Place {
    const reached = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = reached.then(() => promise);
    return { reached, leave: resolve };
  }
}
