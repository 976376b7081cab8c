/** Bounds of the event streams of one browser. The client library has those of a single connection. */
export const bounds = {
  /** Agents with a stream at the same time, in all pages: without HTTP/2 a browser has six connections per host. */
  agents_max: 3,
  batch_ms: 16,
  batch_frames_max: 500,
  /** Unacknowledged batches of a page at which its agent's stream pauses. */
  batches_unacked_max: 2,
  /** How long a page that acknowledges nothing delays other pages that watch the same agent. */
  stall_ms: 5_000,
  /** Unacknowledged batches of changes at which a page misses the rest, and reads its lists again. */
  fleet_batches_unacked_max: 8,
  /** Delay before the stream of changes is tried again after an error that seemed permanent. */
  fleet_retry_ms: 30_000,
  /**
   * After this much silence of the stream of changes, by the clock, a page that is shown replaces all connections: they may
   * have died while the machine was asleep, when timers stop. A missed heartbeat and a margin.
   */
  overdue_ms: 40_000,
  /** A worker that has not replied by then is replaced with a hub in the page. */
  worker_hello_ms: 5_000,
  /** While the browser is offline: the pause between questions to the service, and how long an answer may take. */
  online_check_ms: 5_000,
  /** How often a page reports that it is open, if the browser has no locks, and after which silence it counts as closed. */
  ping_ms: 20_000,
  quiet_ms: 90_000,
} as const;
