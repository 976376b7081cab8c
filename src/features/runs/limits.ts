/** Limits of the feature `runs`. Names end with their unit. */
import { KIB, MIB } from '../../base/limits.ts';
import { scaled } from '../../base/time-scale.ts';

export const limits = {
  /** Shorter lists of dependencies are parsed each time instead of being cached. */
  step_needs_kept_min: 64,
  /** Lists of dependencies that are cached. */
  step_needs_cached_max: 64,
  /** Steps of members without ACP that a run executes at the same time. */
  run_plain_steps_max: 16,
  /** How long time limits wait for unreported ends if they fire late or the plane has just started. Longer than `node_unreachable_ms`. */
  timeouts_wait_ms: scaled(60_000),
  /** A time limit that fires this late may have passed while the plane's machine was asleep. */
  timeout_late_ms: 10_000,
  /** Definitions of runs that are kept in memory. */
  run_specs_cached_max: 32,
  /** Reasons why a person should look at a run. Older ones are dropped. */
  attention_reasons_max: 10,
  /** How many times starting an assignment, or reading its output, may fail before the run shows why. */
  hidden_failures: 3,
  /** Input of one step. */
  step_input_bytes_max: 3 * MIB,
  /** Outputs up to this size are kept without summing those of the run, which takes time. */
  step_output_small_bytes: 8 * KIB,
  /** Outputs of a run together. */
  run_outputs_bytes_max: 32 * MIB,
  /** End of stdout that becomes a step's output. */
  step_stdout_bytes: 64 * KIB,
  /** Longest error of a step. */
  step_error_chars_max: 4 * KIB,
  /** Input that a prompt contains. */
  step_prompt_input_chars: 64 * KIB,
  /** Output of one earlier step that a prompt contains. */
  step_prompt_output_chars: 16 * KIB,
  /** Outputs of all earlier steps that a prompt contains. */
  step_prompt_outputs_chars: 256 * KIB,
  /** Shortest time between two drawings of `svc runs watch`. */
  cli_redraw_ms: 100,
  /** Interval at which `svc runs watch` updates the times. */
  cli_tick_ms: 1_000,
  /** Interval at which `svc runs watch` looks for reviews. */
  cli_review_poll_ms: 2_000,
  /** Agents of old runs that one pass of retention deletes on each node. */
  expired_agents_per_sweep: 20,
  /** Last lines of stderr in the error of a failed step. */
  step_error_lines: 5,
  /** The most characters of these lines, and of the agent's last message in the error of a failed turn. */
  step_error_excerpt_chars: 1_000,
} as const;
