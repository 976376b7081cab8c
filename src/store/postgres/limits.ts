/** Limits of the PostgreSQL store. Names end with their unit. */

export const limits = {
  /** Connections to PostgreSQL: half of them read, half of them write. */
  connections: 16,
  /** Connections with which the worker of the event log reads PostgreSQL. */
  worker_readers_max: 2,
  /** How long a transaction waits for a connection to PostgreSQL. */
  connect_ms_max: 5_000,
  /** A silent connection to PostgreSQL is probed after this time. */
  keepalive_ms: 10_000,
  /** An unused connection to PostgreSQL is closed after this time. */
  idle_ms: 60_000,
  /** PostgreSQL ends a transaction that sends nothing for this long. */
  silent_transaction_ms_max: 5_000,
  /** How long a statement waits for a lock in PostgreSQL before its transaction runs again. */
  lock_ms_max: 3_000,
  /** How long a plane that starts waits until PostgreSQL releases the claim of one that has ended. */
  claim_wait_ms: 3_000,
  /** Interval at which a plane checks that it has its claim, and between attempts to get it back. */
  claim_check_ms: 1_000,
  /** Interval between attempts of a plane that stands by to get the claim. */
  standby_attempt_ms: 100,
  /** How long a plane that stands by waits after it has lost its connection and has a new one. */
  standby_yield_ms: 2_000,
  /** A plane that stands by looks which plane is active each time after this many attempts: once a second. */
  standby_attempts_per_look: 10,
  /** How long a plane without heartbeats is still listed. */
  silent_plane_kept_ms: 3_600_000,
  /** A plane whose heartbeat is the same at so many looks in a row is replaced. */
  silent_looks_max: 8,
  /** A connection to PostgreSQL that does not answer a check of the claim for this long is closed. */
  claim_answer_ms_max: 5_000,
  /** If PostgreSQL cannot be reached for this long, all connections to it are closed, because they may be half-open. */
  unreachable_ms_max: 10_000,
  /** PostgreSQL releases the claim of a plane that it cannot reach for this long. */
  claim_unreachable_ms_max: 10_000,
  /** How long a plane that starts waits for the last writes of its predecessor. */
  last_writes_ms_max: 15_000,
  /** A full disk of PostgreSQL is logged once within this time. */
  full_disk_log_ms: 600_000,
  /** A plane warns when it starts if its clock differs from that of PostgreSQL by more than this. */
  clock_difference_ms: 30_000,
  /** How many times a transaction that conflicts with others is tried. */
  attempts_max: 6,
  /** How much each commit raises the number of transactions that may run at once. At 0.02, about 2 % of them conflict. */
  slots_per_success: 0.02,
  /** How many waiting writes share a transaction, at most. */
  shared_writes_max: 16,
  /** No write joins a transaction that has run for this long. */
  shared_ms_max: 20,
  /** A transaction that takes longer than this no longer occupies a slot. */
  slot_ms_max: 1_000,
  /** A transaction excludes all other writes from this attempt on. */
  gate_attempt: 4,
  /** Transactions run again until this long after the connection to PostgreSQL was lost. */
  lost_ms_max: 10_000,
  /** Pause between attempts to connect to PostgreSQL again, and to ask how a commit ended. */
  reconnect_ms: 50,
  /** Texts that each connection of a pool prepares. Each takes about 20 KiB on the server. */
  prepared_max: 200,
  /** Longer texts have long lists, and are rarely the same. */
  prepared_chars_max: 8_000,
  /** A text is prepared when it is used for this time. */
  prepared_from_uses: 4,
  /** Texts whose uses are counted. */
  counted_texts_max: 1_000,
  /** Rows that a visit of many rows requests first from PostgreSQL: it may need only a few large ones. */
  fetch_rows_min: 4,
  /** How many times as many rows a visit requests each time. */
  fetch_rows_factor: 4,
  /** Rows that a visit of many rows requests at once from PostgreSQL, at most. */
  fetch_rows_max: 256,
} as const;
