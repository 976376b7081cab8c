/** Limits of the module `store`. Names end with their unit. */
import { KIB, MIB } from '../base/limits.ts';

export const limits = {
  /** How long a commit waits for more writes to share its fsync, if recent commits had several. */
  group_commit_ms: 3,
  /** A group of writes is committed after running for this long. */
  group_run_ms_max: 8,
  /** A group of writes is committed when it reaches this size. */
  group_bytes_max: 1 * MIB,
  /** A write of at least this size is committed without waiting. */
  group_now_bytes: 256 * KIB,
  /** Page size of the database. */
  database_page_bytes: 8 * KIB,
  /** Page cache of a database connection. */
  database_cache_bytes: 16 * MIB,
  /** How long a connection waits for a lock. */
  database_busy_ms: 5_000,
  /** Prepared statements that one connection caches. */
  statements_cached_max: 500,
  /** Values of `Store.cachedRead` that are kept until the next commit. */
  cached_reads_max: 1_000,
  /** A transaction that wakes more keys wakes whole topics. */
  wakes_per_transaction_max: 64,
  /** How much of its body the error of a transaction quotes. */
  quoted_body_chars: 200,
  /** Frames of the caller's stack that a write remembers for its errors. */
  caller_stack_frames: 2,
  /** Length of the write-ahead log at which SQLite itself runs a checkpoint. */
  wal_pages_max: 40_000,
  /** The file of the write-ahead log is truncated to this size. */
  wal_kept_bytes_max: 64 * MIB,
  /** A checkpoint runs after this many bytes were written. */
  wal_checkpoint_bytes: 8 * MIB,
  /** Databases larger than this are not checked at startup. */
  quick_check_bytes_max: 32 * MIB,
  /** Pages that a backup copies at once, before other work continues. */
  backup_pages_per_step: 256,
  /** The store's worker ends after being idle for this long. */
  store_worker_idle_ms: 5_000,
  /** How long readers wait before they ask again which numbers are settled, while a transaction keeps numbers open. */
  settle_ms: 10,
  /** After a restore, numbers continue this far ahead: those of streams, and those of logs that the old database does not know. */
  restore_jump_events: 1_000_000_000,
  /** Larger data of an event is not read together with other rows. Output is never larger. */
  event_inline_bytes_max: 64 * KIB,
  /** Rows that a move to another database copies at once. */
  transfer_rows: 256,
  /** A move to another database copies fewer rows at once if they have this many bytes. */
  transfer_bytes: 1 * MIB,
  /** Blocks of segments, of up to a few hundred KiB, that a move to another database reads at once from PostgreSQL. */
  transfer_blocks: 16,
} as const;
