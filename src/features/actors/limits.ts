/** Limits of the feature `actors`. Names end with their unit. */
import { KIB, MIB, limits as sharedLimits } from '../../base/limits.ts';

export const limits = {
  /** Result of a call. */
  actor_result_bytes_max: 3 * MIB,
  /** Time limit of a call of `svc actor`. */
  actor_wait_ms: 15_000,
  /** Calls that `svc mcp --actor` makes at the same time, except for those that wait for mail. */
  actor_calls_at_once: turns(sharedLimits.actor_calls_per_token - sharedLimits.actor_receives_per_token),
  /** Calls that wait for mail and that `svc mcp --actor` makes at the same time. */
  actor_receives_at_once: turns(sharedLimits.actor_receives_per_token),
  /** Time that a call waits while too many others are in progress. */
  actor_full_ms: 15_000,
  /** First and longest average delay between its attempts. */
  actor_full_pause_ms: [20, 1_000],
  /** Time after the last call until `svc mcp --actor` closes its connection. */
  actor_connection_idle_ms: 1_000,
  /** Dependencies of a step that a call can name. */
  actor_needs_max: 2_048,
  /** Longest error text of a call. */
  actor_error_chars_max: 64 * KIB,
  /** Attempts of a call. */
  actor_tries: 3,
  /** Delay between attempts. */
  actor_retry_ms: 500,
} as const;

/** Limits of a queue in which only the number of running tasks matters. */
function turns(running: number) {
  return {
    ...{ running, running_per_owner: running, running_per_resource: running },
    ...{ waiting: 1_000, waiting_per_owner: 1_000, waiting_per_resource: 1_000 },
  };
}
