/** Limits on the parts of an agent's log that a transcript keeps, because a log has no limit. */
const KI = 1024;

export const bounds = {
  /** Items of a transcript; the oldest are dropped first. */
  items: 20_000,
  /** Characters in all items together. */
  items_chars: 64 * KI * KI,
  /** Text of one message, one file of a diff, one JSON value. */
  text_chars: 256 * KI,
  /** An image or a sound, as base64. */
  media_chars: 2 * KI * KI,
  /** Everything that one message or one tool call contains. */
  body_chars: 4 * KI * KI,
  /** Blocks of a message, contents of a tool call, locations, options, entries of a plan, commands. */
  parts: 1_000,
  /** A title, a name, a description. */
  title_chars: 4 * KI,
  /** The title of a tool call, which may be the whole command that a person allows. */
  call_title_chars: 64 * KI,
  /** Consecutive output of the agent that is not a message. */
  output_chars: 64 * KI,
  turns: 10_000,
  sessions: 1_000,
  /** Requests of the service that the agent has not answered. */
  open_requests: 1_000,
  /** Sub-agents of one session, and concurrent authors. */
  subagents: 1_000,
  /** A diff with more changes than this is not counted line by line. */
  diff_edits: 1_000,
} as const;
