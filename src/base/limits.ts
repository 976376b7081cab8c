/**
 * Every bound of the service in one place: queues, pages, bodies, chunks, retries. Units come last in the names.
 * Values that an operator can change are defaults here; `main/config.ts` says under which key.
 */
export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

export const limits = {
  body_bytes_max: 1 * MIB,
  json_depth_max: 64,
  header_bytes_max: 16 * KIB,
  headers_timeout_ms: 10_000,
  request_timeout_ms: 30_000,
  connections_check_ms: 5_000,
  path_chars_max: 4_096,
  name_chars_max: 200,
  password_chars_max: 1_024,
  command_chars_max: 64 * KIB,
  argv_items_max: 1_024,
  env_items_max: 256,
  env_value_chars_max: 64 * KIB,
  label_items_max: 64,
  label_chars_max: 256,
  search_chars_max: 256,
  idempotency_key_chars_max: 255,
  page_items_max: 200,
  page_items_default: 100,
  streams_per_user: 100,
  streams_total: 10_000,
  requests_per_second: 50,
  requests_burst: 100,

  heartbeat_ms: 30_000,
  stream_stall_ms: 30_000,
  stream_recheck_ms: 10_000,
  stream_queue_bytes_max: 1 * MIB,
  tail_ring_bytes_max: 1 * MIB,

  event_output_bytes_max: 64 * KIB,
  ingest_read_bytes: 1 * MIB,
  fact_retry_ms: 1_000,
  timer_retry_ms: 1_000,
  outbox_retry_ms: 500,
  outbox_retry_ms_max: 10_000,
  restart_backoff_ms: 10_000,
  restart_backoff_ms_max: 300_000,
  quiet_after_ms: 600_000,
  ingest_retry_ms: 100,
  ingest_retry_ms_max: 5_000,
  spool_check_bytes: 64,
  spool_keep_bytes: 64 * MIB,
  group_commit_ms: 3,

  stop_grace_ms: 10_000,
  stop_grace_ms_max: 60_000,
  leftover_grace_ms: 2_000,
  sweep_ms: 250,
  drain_ms: 10_000,

  feed_keep_ms: 24 * 60 * 60 * 1000,
  retention_days: 30,
  retention_bytes_per_agent: 256 * MIB,
  retention_bytes_total: 20 * GIB,
  retention_disk_share: 0.2,

  lock_wait_ms: 500,

  disk_no_start_bytes: 2 * GIB,
  disk_no_start_share: 0.05,
  disk_pause_bytes: 1 * GIB,
  disk_pause_share: 0.02,

  exec_drain_ms: 2_000,
  git_timeout_ms: 30_000,
  git_checkout_timeout_ms: 10 * 60 * 1000,
  git_output_bytes_max: 8 * MIB,
  diff_bytes_max: 1 * MIB,
  changed_files_max: 2_000,
} as const;
