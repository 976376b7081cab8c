/** `Idempotency-Key`: a repeated request gets the first response, and a different request with the same key is rejected. */
import type { Caller } from '../features/accounts/rules.ts';

export interface StoredAnswer {
  status: number;
  /** Absent for responses without a body. */
  body?: unknown;
  location: string | null;
  /** Additional headers, such as `x-warning`. */
  headers?: Readonly<Record<string, string>>;
}

/** The first request with a key. The caller must call exactly one of the two methods. */
export interface FirstAttempt {
  /** Stores the response. Its body may contain a secret, so bodies and headers must be encrypted. */
  keep(answer: StoredAnswer): Promise<void>;
  /** Frees the key after a request that failed, unless it has changed something that a repetition continues. */
  release(): Promise<void>;
}

export interface Idempotency {
  /**
   * Returns the first response if there is one; waits while the first request is in progress. Throws
   * `problems.idempotencyReused()` for a different request with the same key.
   */
  begin(
    caller: Caller,
    key: string,
    request_hash: Uint8Array,
  ): Promise<{ stored: StoredAnswer } | { first: FirstAttempt }>;
}
