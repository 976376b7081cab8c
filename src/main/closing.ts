/**
 * What was opened, to be closed in the reverse order. A part that cannot be closed does not keep the others open: it is
 * told of, and the rest goes on.
 */
export class Closing {
  readonly #steps: (() => Promise<void> | void)[] = [];
  #closed: Promise<unknown[]> | null = null;

  push(step: () => Promise<void> | void): void {
    this.#steps.push(step);
  }

  /** Answers what went wrong; closing twice is closing once. */
  close(): Promise<unknown[]> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (const step of this.#steps.reverse()) {
      try {
        await step();
      } catch (error) {
        errors.push(error);
      }
    }
    return errors;
  }
}
