/** Limits of the feature `accounts`. Names end with their unit. */

export const limits = {
  /** Longest id of an agent or team in the limits of a token. */
  id_chars_max: 64,
  /** Memory of argon2id, as OWASP recommends. */
  password_hash_memory_kib: 19_456,
  /** Passes of argon2id, as OWASP recommends. */
  password_hash_passes: 2,
  /** Hashes that are computed at the same time. */
  password_hashes_at_once: 2,
  /** Agents, and teams, that a token can be limited to. */
  token_limits_max: 100,
  /** Lifetime of a join link. */
  join_challenge_ms: 10 * 60_000,
  /** A join link with less time left than this is replaced. */
  join_challenge_left_ms: 60_000,
  /** Wrong PINs before a new challenge is needed. */
  join_pin_tries: 5,
  /** Failed sign-ins of a user before a delay: from one address, and from all addresses. */
  login_failures_max: 5,
  /** Failed sign-ins of a user, from all addresses, after which the delay applies to addresses without failures too. */
  login_failures_per_user_max: 100,
  /** Period in which failures are counted. */
  login_window_ms: 15 * 60_000,
  /** First delay after too many failures. */
  login_delay_ms: 30_000,
  /** Longest delay after too many failures. */
  login_delay_ms_max: 15 * 60_000,
  /** Failures of one address in its period. */
  login_failures_per_ip: 20,
  /** Period in which the failures of one address are counted. */
  login_ip_window_ms: 60_000,
  /** How long a user who has signed in from an address is not blocked by the failures of others there. */
  login_familiar_ms: 30 * 24 * 60 * 60_000,
  /** Sign-ins from one address that may wait at the same time; those of a user who is known there wait separately. */
  logins_waiting_per_ip: 200,
  /** Entries of a folder in which `svc join` looks for a repository. */
  repository_entries_max: 200,
} as const;
