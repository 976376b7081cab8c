/** Limits of the module `work`. Names end with their unit. */

export const limits = {
  /** Wait before a failed fact handler runs again. */
  fact_retry_ms: 1_000,
  /** Wait before a failed timer runs again. */
  timer_retry_ms: 1_000,
  /** First wait before a failed intent is sent again. */
  outbox_retry_ms: 500,
  /** Longest wait before a failed intent is sent again. */
  outbox_retry_ms_max: 10_000,
} as const;
