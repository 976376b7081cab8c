/** Limits of the module `server/actors`. Names end with their unit. */
import { MIB } from '../../base/limits.ts';

export const limits = {
  /** Longest name of a method. */
  actor_method_chars_max: 64,
  /** Parameters of a call. */
  actor_params_bytes_max: 1 * MIB,
  /** Actor calls at the same time. */
  actor_calls_max: 64,
  /** Calls that wait, for example for mail, at the same time. */
  actor_receives_max: 32,
} as const;
