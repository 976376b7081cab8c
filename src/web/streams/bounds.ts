/** The bounds of the streams in one browser. Those of a connection, its waits and its silence, are the contract's client's. */
export const bounds = {
  /** Of different agents at once, in all pages: a browser has six connections for a host without HTTP/2. */
  agents_max: 3,
  batch_ms: 16,
  batch_frames_max: 500,
  /** So many batches may be under way to a page before its agent's stream is not read on. */
  batches_untaken_max: 2,
  /** So long does a page that takes nothing hold up others that watch the same agent. */
  stall_ms: 5_000,
  /** A page that has not taken so many batches of changes misses the rest, and loads its lists again. */
  fleet_batches_untaken_max: 8,
  /** A worker that has not said hello by then is done without. */
  worker_hello_ms: 5_000,
  /** Where the browser cannot tell who is gone: how often a page says that it is there, and when it is not believed to be. */
  ping_ms: 20_000,
  quiet_ms: 90_000,
} as const;
