/** Limits of the module `cli`. Names end with their unit. */
import { KIB } from '../base/limits.ts';

export const limits = {
  /** Longest escape sequence that the terminal filter recognizes. */
  terminal_sequence_chars_max: 4 * KIB,
  /** How long completion waits for the plane. */
  completion_wait_ms: 1_500,
  /** Teams whose runs completion lists. */
  completion_teams_max: 10,
  /** How long `svc stop` waits for the plane. */
  stop_wait_ms: 30_000,
  /** Width of a terminal that does not report one. */
  terminal_columns: 80,
  /** Shortest time between two changes of a line about progress. */
  progress_ms: 100,
} as const;
