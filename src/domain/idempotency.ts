/** What an `Idempotency-Key` promises: the same request gets the first answer again, another one is refused. */
import type { Caller } from './user.ts';

export interface StoredAnswer {
  status: number;
  /** Absent for answers without a body. */
  body?: unknown;
  location: string | null;
}

/** A first request with its key. Exactly one of the two is called. */
export interface FirstAttempt {
  /** Keeps the answer. `secret`: the body holds a secret and must not be stored in clear. */
  keep(answer: StoredAnswer, options: { secret: boolean }): Promise<void>;
  /** The request failed and changed nothing: the key is free again. */
  release(): Promise<void>;
}

export interface Idempotency {
  /**
   * The first answer when there is one; waits while the first request is under way. Throws
   * `problems.idempotencyReused()` for another request with the same key.
   */
  begin(
    caller: Caller,
    key: string,
    request_hash: Uint8Array,
  ): Promise<{ stored: StoredAnswer } | { first: FirstAttempt }>;
}
