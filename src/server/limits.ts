/** Limits of the module `server`. Names end with their unit. */
import { KIB, MIB } from '../base/limits.ts';
import { scaled } from '../base/time-scale.ts';

export const limits = {
  /** Longest list of allowed folders in a header. */
  allowed_paths_chars_max: 4_096,
  /** Part of the possible open files that clients' connections may use. The rest is for the service's own work. */
  connections_share: 0.6,
  /** Connections without a request with a valid token so far, but at most a quarter of all. */
  connections_anonymous_max: 4_000,
  /** Largest request body without a token. */
  public_body_bytes_max: 128 * KIB,
  /** Size of all request headers. */
  header_bytes_max: 16 * KIB,
  /** Time to receive the headers. */
  headers_timeout_ms: 10_000,
  /** Time to receive a request. */
  request_timeout_ms: 30_000,
  /** Interval between checks for slow connections. */
  connections_check_ms: 5_000,
  /** An idle connection is closed after this time. */
  keep_alive_ms: 72_000,
  /** A response that makes no progress for this time is ended. */
  response_stall_ms: 30_000,
  /** Bytes of a rejected body that are read, so that the client sees the response. */
  refused_body_bytes_max: 1 * MIB,
  /** Time during which a rejected body is read. */
  refused_body_ms: 2_000,
  /** Callers whose rate is tracked at the same time. */
  rate_buckets_max: 10_000,
  /** A stream whose client reads nothing for this time is closed. */
  stream_stall_ms: 30_000,
  /** Interval at which a stream checks whether its caller still has access, such as after its token expired. */
  stream_recheck_ms: scaled(10_000),
  /** A gauge that takes longer to read, for example because the database is slow, has no value. */
  metric_read_ms_max: 2_000,
  /** Interval at which a shutdown closes idle connections. */
  drain_poll_ms: 50,
  /** Time after which a shutdown ends open requests. */
  requests_cut_ms: scaled(8_000),
  /** How long a standby holds a request while no plane is active. A takeover takes a few seconds. */
  forward_hold_ms: 10_000,
  /** Requests that a standby holds at the same time. */
  held_requests_max: 1_000,
  /** Interval at which a standby sends a held request to the same plane again. */
  forward_retry_ms: 250,
  /** Time after which a standby gives up requests to a plane that is no longer active. Responses on their way still arrive. */
  forward_grace_ms: 2_000,
  /** Time to connect to another plane, including the TLS handshake. */
  peer_connect_ms: 3_000,
  /** A connection to another plane is closed when idle for this time. Less than `response_stall_ms` of that plane. */
  peer_idle_ms: 15_000,
  /** Time for the active plane to answer whether it is ready. */
  peer_probe_ms: 2_000,
  /** Size of all request headers from another plane, which adds its own to those of the client. */
  peer_header_bytes_max: 17 * KIB,
} as const;
