/** Limits of the feature `reviews`. Names end with their unit. */
import { KIB, MIB } from '../../base/limits.ts';

export const limits = {
  /** Tool calls of the pending reviews of one session that are stored in full; further ones are shortened. */
  pending_tool_calls_chars_max: 2 * MIB,
  /** A shortened tool call. The agent's log has all of it. */
  short_tool_call_chars_max: 16 * KIB,
  /** Reviews, and elicitations, of one agent that were withdrawn or expired before an answer. Older ones are deleted. */
  unanswered_requests_max: 200,
  /** Unanswered ones are deleted after this many requests of a session, because finding them takes time. */
  requests_per_cleanup: 100,
} as const;
