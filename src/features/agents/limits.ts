/** Limits of the feature `agents`. Names end with their unit. */
import { KIB } from '../../base/limits.ts';

export const limits = {
  /** Agents of the same name that a warning lists. */
  warned_ids_max: 10,
  /** Longest command. */
  command_chars_max: 64 * KIB,
  /** Arguments of a command. */
  argv_items_max: 1_024,
  /** Labels of an agent. */
  label_items_max: 64,
  /** How long one request can wait for an agent. */
  agent_wait_s_max: 60,
  /** Requests that wait for agents at the same time. The owner is a user. */
  agent_waiters: { per_owner: 500, total: 1_000 },
  /** How long a start or a stop waits for the agent's new status after the node's answer. */
  status_wait_ms: 60_000,
  /** How many times a request to stop all agents looks for more of them. */
  stop_all_rounds: 5,
  /** How long no agent starts after all were stopped, so that the plane can stop. */
  start_pause_ms: 30_000,
  /** How many times the start of a run's agent may fail before the run shows why. */
  hidden_start_failures: 3,
  /** First wait of the restart policy. */
  restart_backoff_ms: 10_000,
  /** Longest wait of the restart policy. */
  restart_backoff_ms_max: 300_000,
  /** After this time without output, an agent is shown as quiet. */
  quiet_after_ms: 600_000,
  /** Longest line about what an agent does. */
  now_chars_max: 200,
  /** Lines of stderr that are searched for the last one that is not empty. */
  failure_lines: 5,
  /** Shortest time between two changes of a session's progress, unless its agent's state changes too. */
  progress_interval_ms: 1_000,
  /** Interval at which the fleet feed announces when agents last wrote to their logs. */
  activity_interval_ms: 15_000,
  /** Time after which a failed measurement of an agent's changes is repeated. */
  measure_again_ms: 5_000,
  /** How many times a failed measurement of an agent's changes is repeated. */
  measure_repetitions: 3,
  /** Sessions whose secrets are kept in memory. */
  redactions_cached_max: 1_000,
  /** ACP sessions whose parsed state is kept in memory. */
  acp_states_parsed_max: 500,
  /** Longest time between SIGTERM and SIGKILL. */
  stop_grace_ms_max: 60_000,
  /** Interval at which a request checks whether the node is lost. */
  node_answer_poll_ms: 300,
  /** Agents of an unreachable node that one transaction marks. */
  stale_agents_per_write: 100,
  /** Agents that were recovered from one remote node and still exist. A hostile node could invent any number. */
  recovered_agents_per_node_max: 1_000,
  /** Sessions of one agent that were recovered from a remote node. */
  recovered_sessions_per_agent_max: 100,
  /** Files with uncommitted changes that the dry run of a deletion lists. */
  uncommitted_files_max: 100,
  /** Events that `svc logs -n` reads beyond the requested lines. */
  cli_tail_spare_events: 64,
  /** Factor by which `svc logs -n` reads more events if it found too few lines. */
  cli_tail_growth: 8,
  /** Events that `svc logs -n` reads at most. */
  cli_tail_events_max: 40_000,
  /** Longest prompt in a table. */
  cli_cell_chars: 80,
  /** Failed connections in a row after which `svc logs` stops. */
  cli_fruitless_max: 3,
  /** Interval at which `svc agents wait` looks whether a kept start was carried out. */
  cli_pending_poll_ms: 1_000,
  /** Shortest time between two lists that `svc agents ls --watch` requests. */
  cli_watch_interval_ms: 1_000,
  /** Text that one request of `svc agents input` sends. */
  cli_input_chars: 128 * KIB,
  /** Patches that are sent at the same time. Each is in memory until its last byte is sent. */
  patches_sent: {
    running: 6,
    running_per_owner: 2,
    running_per_resource: 2,
    waiting: 1_000,
    waiting_per_owner: 50,
    waiting_per_resource: 50,
  },
  /** Time to read a patch. */
  patch_send_ms: 5 * 60 * 1000,
} as const;
