/** Limits of the module `tools`. Names end with their unit. */
import { KIB, MIB } from '../base/limits.ts';

export const limits = {
  /** Default time for one check of the agent doctor. */
  doctor_check_ms: 60_000,
  /** How long a cancelled turn may take before its permission request is answered. */
  doctor_cancel_ms: 3_000,
  /** How long an agent may take to end after SIGTERM. */
  doctor_end_ms: 5_000,
  /** How long processes may remain after SIGKILL. */
  doctor_leftover_ms: 2_000,
  /** Interval between checks for such processes. */
  doctor_leftover_poll_ms: 50,
  /** Interval between checks whether a killed agent has exited. */
  doctor_kill_poll_ms: 5,
  /** Longest line of an agent. */
  doctor_line_bytes_max: 32 * MIB,
  /** Lines above this length are a finding. */
  doctor_line_bytes_long: 1 * MIB,
  /** End of stderr that a report shows. */
  doctor_stderr_bytes_max: 4 * KIB,
  /** Text of an agent that is kept. */
  doctor_text_chars_max: 64 * KIB,
  /** Largest request to the scripted model. */
  doctor_model_body_bytes_max: 32 * MIB,
  /** Requests to the scripted model that are kept. */
  doctor_model_requests_max: 1_000,
  /** Sessions that the demo agent stores. */
  demo_sessions_kept: 1_000,
  /** Largest file that the demo agent reads. */
  demo_file_bytes_max: 256 * KIB,
  /** Part of a prompt that it quotes. */
  demo_quote_chars_max: 60,
  /** Permission requests of one `/ask`. */
  demo_asks_max: 100,
  /** Updates of one `/flood`. */
  demo_updates_max: 1_000_000,
  /** Size of one `/long`. */
  demo_message_kib_max: 64 * KIB,
  /** Length of one `/sleep`. */
  demo_sleep_seconds_max: 24 * 60 * 60,
  /** Part of a message that it quotes. */
  demo_mail_chars_max: 300,
  /** Output of a command that it runs. */
  demo_command_bytes_max: 4 * MIB,
  /** Attempts to reach the plane. */
  demo_tries: 120,
  /** Wait between attempts. */
  demo_retry_ms: 1_000,
  /** Slowest speed of the demo agent. */
  demo_speed_min: 0.01,
  /** Fastest speed of the demo agent. */
  demo_speed_max: 1_000,
  /** Longest question of the demo agent. */
  demo_question_chars_max: 1_000,
} as const;
