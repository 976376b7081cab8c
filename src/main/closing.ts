/**
 * Closes opened resources in reverse order. If one cannot be closed, the error is collected and the others are closed
 * anyway.
 */
export class Closing {
  readonly #steps: (() => Promise<void> | void)[] = [];
  #closed: Promise<unknown[]> | null = null;

  push(step: () => Promise<void> | void): void {
    this.#steps.push(step);
  }

  /** Closes everything and returns the errors. Idempotent. */
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
