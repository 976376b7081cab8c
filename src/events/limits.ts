/** Limits of the module `events`. Names end with their unit. */
import { GIB, KIB, MIB } from '../base/limits.ts';
import { scaled } from '../base/time-scale.ts';

export const limits = {
  /** Interval of heartbeats in streams. */
  heartbeat_ms: 30_000,
  /** Newest events of an agent, or entries of the feed, that are kept in memory for followers. */
  tail_ring_bytes_max: 1 * MIB,
  /** How long events are collected after they were sent to all followers, as a multiple of the time that this took. */
  tail_pause_factor: 2,
  /** Longest of these pauses: on a busy machine, sending takes long because other programs run in between. */
  tail_pause_ms_max: 10,
  /** Collected events are sent when they reach this size. */
  tail_coalesce_bytes: 64 * KIB,
  /** Size of a part of a replay, which is sent at once. */
  replay_part_bytes: 256 * KIB,
  /** Events that a replay reads first. */
  replay_rows_first: 32,
  /** Events that a replay reads at once. */
  replay_rows_max: 1_000,
  /** A page of events ends when they have this many stored bytes, because a parsed message takes ten times as much memory. */
  page_bytes_max: 4 * MIB,
  /** Events that the worker reads first to seal them. With 128 large ones, the service needed 25 MiB more. */
  seal_rows_min: 16,
  /** Small events that the worker reads at once to seal them. */
  seal_rows_max: 512,
  /** Size of the events that the worker reads at once to seal them, if they are like those that it read before. */
  seal_read_bytes: 128 * KIB,
  /** Output in one event; longer lines are split. */
  event_output_bytes_max: 64 * KIB,
  /** Bytes of a spool file that are read at once. */
  ingest_read_bytes: 1 * MIB,
  /** The same for agents that speak ACP. */
  acp_read_bytes: 128 * KIB,
  /** A transaction over messages of an ACP agent ends when handling them has taken this long. */
  acp_transaction_ms: 16,
  /** Messages of an ACP agent in one transaction. */
  acp_transaction_messages_max: 2_000,
  /** Messages of an ACP agent are costly if fewer than this took all the time of a transaction. */
  acp_costly_messages_max: 100,
  /** How long agents with costly messages pause after each of these transactions, as a multiple of the time that it took. */
  acp_pause_factor: 2,
  /** Longest of these pauses. */
  acp_pause_ms_max: 1_000,
  /** Longest line that can be an ACP message. */
  acp_frame_bytes_max: 32 * MIB,
  /** Memory for the unfinished lines of all sessions together. */
  acp_waiting_bytes_max: 128 * MIB,
  /** Read buffers that are kept for reuse. */
  ingest_buffers_max: 8,
  /** Sessions that are read at the same time. */
  ingest_sessions_max: 100_000,
  /** Session facts that wait for the output of their session. */
  ingest_facts_max: 2_000,
  /** First delay before reading again after an error. */
  ingest_retry_ms: 100,
  /** Longest delay before reading again after an error. */
  ingest_retry_ms_max: 5_000,
  /** Bytes before the offset that are compared to detect a changed file. */
  spool_check_bytes: 64,
  /** How long bytes that may be the beginning of a secret are held back. */
  redact_hold_ms: 1_000,
  /** Rows that the first transaction of SQLite deletes. */
  delete_rows_first: 64,
  /** Rows that one transaction deletes or reads. */
  delete_rows_per_slice: 500,
  /** Events that are read for one part of an output. */
  scan_rows_per_slice: 4_096,
  /** The binary search for a position ends when this many events are left. */
  scan_window_rows: 1_024,
  /** Events that the search index adds in one transaction. */
  search_events_per_transaction: 200,
  /** Text that the search index adds in one transaction. */
  search_chars_per_transaction: 1 * MIB,
  /** Text of one event that is searchable. */
  search_chars_per_event: 16 * KIB,
  /** How long the search index collects events before it adds them. */
  search_wait_ms: 250,
  /** How long the search index pauses after each update, as a multiple of the time that the update took. */
  search_pause_factor: 3,
  /** Longest of these pauses. */
  search_pause_ms_max: 1_000,
  /** Delay after an error of the search index. */
  search_retry_ms: 5_000,
  /** Searches at the same time. Each search runs in parts, between which the worker does other work. */
  searches: {
    running: 8,
    running_per_owner: 1,
    running_per_resource: 1,
    waiting: 1_000,
    waiting_per_owner: 20,
    waiting_per_resource: 20,
  },
  /** A part of a search ends after this time. SQLite cannot interrupt a query, so a slow one takes longer. */
  search_part_ms: 20,
  /** Events that the first query of a part examines. A phrase of 32 words takes up to 1 ms for each large event. */
  search_events_min: 64,
  /** Events that one query examines at most, if the ones before were fast, multiplied by the number of words. */
  search_events_words_max: 131_072,
  /** When to try again if too many searches of a user wait. */
  search_full_retry_s: 1,
  /** Agents that a warning about unreadable segments names. */
  search_reported_agents_max: 10,
  /** Length of the text around a search hit. */
  snippet_chars: 200,
  /** Uncompressed size of a sealed segment. */
  segment_raw_bytes: 16 * MIB,
  /** Compressed bytes of a segment that one transaction stores in PostgreSQL. */
  segment_write_bytes: 1 * MIB,
  /** Compression level: the fastest. */
  segment_level: 1,
  /** An agent's events are sealed when they reach this size. */
  seal_from_bytes: 8 * MIB,
  /** The same as `seal_from_bytes` for an agent that has just written. */
  seal_busy_from_bytes: 64 * MIB,
  /** Unsealed events of all agents that have just written, together. */
  seal_busy_total_bytes: 512 * MIB,
  /** An agent whose newest event is younger than this has just written. */
  seal_busy_ms: scaled(2_000),
  /** Newest events that stay unsealed. */
  seal_keep_bytes: 2 * MIB,
  /** The same as `seal_from_bytes` for an agent without new events. */
  seal_idle_from_bytes: 256 * KIB,
  /** An agent without events for this long is idle. */
  seal_idle_ms: 10 * 60 * 1000,
  /** Interval of log maintenance. */
  maintenance_interval_ms: scaled(5_000),
  /** How long a slice of a deletion should take, and the pause between two slices of a vacuum. */
  maintenance_slice_ms: 3,
  /** Maximum number of failed tasks of log maintenance whose errors are remembered. */
  maintenance_failures_max: 1_000,
  /** Interval of retention. */
  retention_pass_ms: scaled(10 * 60 * 1000),
  /** How long retention by total size uses the sizes of the owners' logs that it has read. */
  retention_shares_ms: scaled(10_000),
  /** Segments of one owner whose ids retention by total size reads at once. */
  retention_segments_per_read: 500,
  /** Free pages that the database keeps. */
  free_pages_kept: 2_000,
  /** Free pages that are returned to the file system at once. */
  vacuum_pages_per_slice: 64,
  /** Interval at which old entries of the fleet feed are deleted. */
  feed_trim_ms: 10 * 60 * 1000,
  /** How long the fleet feed keeps its entries. */
  feed_keep_ms: 24 * 60 * 60 * 1000,
  /** Pause after an announcement to followers of the fleet feed failed. */
  announce_retry_ms: 15_000,
  /** Default of `retention.bytes_total`: size of all logs together. */
  retention_bytes_total: 20 * GIB,
  /** The same default as a share of the disk, for small disks. */
  retention_disk_share: 0.2,
} as const;
