/** Limits of the module `main`. Names end with their unit. */
import { scaled } from '../base/time-scale.ts';

export const limits = {
  /** Names of agents in the message about agents that still run; more would make it unreadable. */
  live_agents_named: 10,
  /** Interval at which expired records are deleted. */
  housekeeping_ms: 300_000,
  /** Time after a start until a database that was not checked while opening is checked, so that the start is not slowed. */
  database_check_ms: 30_000,
  /** Interval at which a service that has started checks whether its event loop is idle. */
  idle_check_ms: 5_000,
  /** The event loop is idle if it was busy for at most this share of the interval. */
  idle_utilization_max: 0.05,
  /** Interval at which a node tries again to store the position of its link, for example while its disk is full. */
  node_state_retry_ms: 10_000,
  /** Interval at which changed certificates are stored again for the other control planes, if that failed. */
  trust_files_retry_ms: scaled(5_000),
  /** Longest duration of a shutdown. */
  plane_stop_ms: scaled(10_000),
  /** Part of a shutdown in which requests can finish. */
  requests_finish_ms: scaled(7_000),
  /** Interval at which the files of the public certificate are checked for changes. */
  public_certificate_check_ms: scaled(5_000),
  /** At this age, what a backup has left is deleted by the next one. */
  backup_abandoned_ms: 24 * 60 * 60 * 1000,
  /** How long a start waits for the lock on the data directory. */
  lock_wait_ms: 500,
  /** Interval between attempts to read the holder of the lock. */
  lock_retry_ms: 20,
  /** Attempts to read the holder of the lock. */
  lock_attempts: 25,
} as const;
