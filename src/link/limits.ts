/** Limits of the module `link`. Names end with their unit. */
import { KIB, MIB } from '../base/limits.ts';
import { scaled } from '../base/time-scale.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

export const limits = {
  /** Allowed folders that a node reports. */
  allowed_paths_max: 64,
  /** Interval of heartbeats. */
  link_ping_ms: scaled(5_000),
  /** Time for the answer to a heartbeat. */
  link_ping_answer_ms: scaled(10_000),
  /** Heartbeats whose round trips are kept: those of five minutes. */
  link_latencies_max: 60,
  /** HTTP/2 flow-control window of a stream. */
  link_window_bytes: 8 * MIB,
  /** Largest HTTP/2 frame. */
  link_frame_bytes: 1 * MIB,
  /** Largest message of the protocol. */
  link_message_bytes_max: 4 * MIB,
  /** Time for a call. */
  link_call_ms: 30_000,
  /** Time for a start, which can create a worktree. */
  link_start_ms: 60_000,
  /** Interval at which the plane reports committed offsets. */
  link_committed_ms: 20,
  /** The plane reports its offsets after this many bytes. */
  link_committed_bytes: 1 * MIB,
  /** Sessions in one message of a snapshot. */
  link_page_sessions: 100,
  /** Size of one message of a snapshot. */
  link_page_bytes: 1 * MIB,
  /** Sessions in a snapshot. */
  link_sessions_max: 100_000,
  /** Size of a whole snapshot. */
  link_snapshot_chars_max: 64 * MIB,
  /** Longest kind, state or reason in a message. */
  link_word_chars_max: 64,
  /** Longest text in a message. */
  link_text_chars_max: 4 * KIB,
  /** Details of a warning. */
  link_details_max: 16,
  /** Processes that survived a stop, in its answer. */
  link_survivors_max: 10_000,
  /** Session facts that wait to be sent to the plane. */
  link_facts_waiting_max: 10_000,
  /** Actor calls through one node at the same time. */
  link_upcalls_max: 1_000,
  /** Input in one message. */
  link_input_bytes: 64 * KIB,
  /** Streams of one connection. */
  link_streams_max: 1_000,
  /** Largest piece of a read: a frame of 32 KiB with its header. */
  pull_piece_bytes: 32 * KIB - 64,
  /** Size of a message with several pieces. */
  pull_message_bytes: 64 * KIB,
  /** Pieces in one message. */
  pull_message_items: 1_000,
  /** Largest piece on a new link, so that even a link that keeps breaking makes progress. */
  pull_piece_bytes_min: 16 * KIB,
  /** The plane grants new credit in steps of this size. */
  pull_credit_bytes: 256 * KIB,
  /** Live lines that follow each other within this time are sent together. */
  pull_close_ms: 0.5,
  /** How long these lines are collected. */
  pull_gather_ms: 1,
  /** Bytes that one long-poll read can buffer. */
  long_poll_bytes_max: 16 * KIB,
  /** Long-poll reads of one link. */
  long_polls_max: 4_096,
  /** Smallest window of bytes in flight. */
  pull_window_bytes_min: 1 * MIB,
  /** Largest window of bytes in flight. */
  pull_window_bytes_max: 16 * MIB,
  /** The window holds what the link drains in this time and one round trip. */
  pull_ahead_ms: 50,
  /** Open reads of one link. */
  pull_reads_max: 100_000,
  /** Lifetime of the plane's certificate authority. */
  ca_lifetime_ms: 3_650 * DAY_MS,
  /** Lifetime of the certificates of one join. */
  join_leaf_lifetime_ms: 1 * DAY_MS,
  /** Certificates are valid from this long ago, because clocks differ. */
  certificate_backdate_ms: 1 * DAY_MS,
  /** Largest certificate. */
  certificate_chars_max: 64 * KIB,
  /** Interval at which certificate files are checked for changes. */
  certificate_check_ms: scaled(5_000),
  /** A warning is logged this long before a certificate expires. */
  certificate_warn_days: 14,
  /** Shortest shared secret, as for HS256. */
  shared_secret_bytes_min: 32,
  /** Lifetime of a token, which is used for one call. */
  link_token_s: 60,
  /** Difference of clocks that a token allows. */
  link_token_leeway_s: 30,
  /** Used tokens that are remembered. */
  link_tokens_seen_max: 100_000,
  /** Time for a join. */
  join_call_ms: 15_000,
  /** Time for an actor call through a node. */
  actor_call_ms: 10_000,
  /** Time to resolve a host name. */
  resolve_ms: 10_000,
  /** Time for a probe of all programs. */
  probe_call_ms: 180_000,
} as const;
