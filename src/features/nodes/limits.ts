/** Limits of the feature `nodes`. Names end with their unit. */
import { scaled } from '../../base/time-scale.ts';

export const limits = {
  /** Folders of agents that the list of repositories can mark as used. */
  used_folders_max: 500,
  /** Interval at which the silence of links is checked. */
  link_check_ms: 1_000,
  /** Interval at which the time of the last message of linked nodes is stored. */
  last_seen_store_ms: 60_000,
  /** First wait before a link is opened again. */
  link_retry_ms: 500,
  /** Longest wait before a link is opened again. */
  link_retry_ms_max: 10_000,
  /** Interval at which the certificate of a linked node is checked. */
  node_care_ms: 60 * 60 * 1000,
  /** Nine missed heartbeats: the node is shown as unreachable. */
  node_unreachable_ms: scaled(45_000),
  /** Lifetime of a bootstrap token. */
  bootstrap_token_ms: 60 * 60_000,
  /** A token that ends sooner is replaced before it is shown. */
  bootstrap_token_spare_ms: 5 * 60_000,
  /** Time for one step of the connection test. */
  health_step_ms: 10_000,
  /** Difference of clocks that the connection test accepts. */
  clock_skew_ms: 30_000,
  /** How long `svc nodes register` waits for the connection. */
  cli_register_wait_ms: 60_000,
  /** Interval at which `svc nodes register` checks the connection. */
  cli_register_poll_ms: 500,
} as const;
