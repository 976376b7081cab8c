/** Limits of the module `server/actors`. Names end with their unit. */
import { MIB } from '../../base/limits.ts';

export const limits = {
  /** Longest name of a method. */
  actor_method_chars_max: 64,
  /** Parameters of a call. */
  actor_params_bytes_max: 1 * MIB,
  /** Actor calls at the same time. */
  actor_calls_max: 128,
  /** Calls with tokens that have not been valid so far, at the same time. */
  actor_calls_unproven_max: 32,
  /** Calls that wait, for example for mail, at the same time. */
  actor_receives_max: 32,
  /** Of these, calls with tokens that have not been valid so far. The rest of the places for such tokens is for calls that do not wait. */
  actor_receives_unproven_max: 16,
  /** Tokens that are remembered to have been valid. */
  actor_tokens_known_max: 1_000,
} as const;
