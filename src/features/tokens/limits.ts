/** Limits of the feature `tokens`. Names end with their unit. */

export const limits = {
  /** A sign-in ends after being unused for this long. */
  token_idle_ms: 12 * 60 * 60 * 1000,
  /** A sign-in ends this long after it began. */
  token_absolute_ms: 7 * 24 * 60 * 60 * 1000,
  /** The last use of a token is recorded at most this often. */
  token_touch_ms: 60_000,
  /** Tokens that are kept in memory. */
  tokens_cached_max: 10_000,
  /** Sign-ins of one user, and API tokens of one user. */
  tokens_per_user: 1_000,
  /** How long sensitive changes are allowed after the password was entered. */
  password_recent_ms: 10 * 60_000,
} as const;
