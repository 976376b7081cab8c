/** Limits of the `work` module. Names of durations include their unit. */

export const limits = {
  /** Maximum number of facts handled in one transaction. */
  facts_per_transaction: 16,
  /** How long facts of unknown kinds, and cursors that no program uses, are kept for a newer program. */
  unknown_facts_kept_ms: 7 * 86_400_000,
  /** Interval at which such facts and cursors are deleted, because that reads all facts. */
  unknown_facts_sweep_ms: 3_600_000,
  /** Delay before a failed fact handler runs again. It grows after unexpected errors. */
  fact_retry_ms: 1_000,
  /** How many times a consumer tries to handle a fact before it moves on to others. */
  fact_tries_max: 5,
  /** Delay before a failed timer runs again. It grows after unexpected errors. */
  timer_retry_ms: 1_000,
  /** Maximum number of failed timers whose growing pauses are remembered. */
  timer_failures_max: 1_000,
  /** Longest time between two looks at the clock, which continues while the machine sleeps, unlike delays. */
  timer_look_ms: 30_000,
  /** First delay before a failed intent is sent again. */
  outbox_retry_ms: 500,
  /** Longest delay before a failed intent is sent again. */
  outbox_retry_ms_max: 10_000,
  /** Longest delay before work is repeated after an unexpected error, which may last until an upgrade. */
  unexpected_pause_ms_max: 300_000,
} as const;
