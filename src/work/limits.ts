/** Limits of the module `work`. Names end with their unit. */

export const limits = {
  /** Facts that are handled in one transaction, at most. */
  facts_per_transaction: 16,
  /** Delay before a failed fact handler runs again. */
  fact_retry_ms: 1_000,
  /** Delay before a failed timer runs again. */
  timer_retry_ms: 1_000,
  /** First delay before a failed intent is sent again. */
  outbox_retry_ms: 500,
  /** Longest delay before a failed intent is sent again. */
  outbox_retry_ms_max: 10_000,
} as const;
