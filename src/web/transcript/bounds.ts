/** How much of an agent's log a page holds: an agent may go on for ever, and a tab may not grow with it. */
const KI = 1024;

export const bounds = {
  /** Items of a transcript; the oldest go first. */
  items: 20_000,
  /** Characters in all of them. */
  items_chars: 64 * KI * KI,
  /** Text of one message, one file of a diff, one JSON value. */
  text_chars: 256 * KI,
  /** An image or a sound, as base64. */
  media_chars: 2 * KI * KI,
  /** Everything that one message or one tool shows. */
  body_chars: 4 * KI * KI,
  /** Blocks of a message, contents of a tool, locations, options, entries of a plan, commands. */
  parts: 1_000,
  /** A title, a name, a description. */
  word_chars: 4 * KI,
  /** What a line of the wire may hold beside frames. */
  output_chars: 64 * KI,
  turns: 10_000,
  sessions: 1_000,
  /** Requests of ours that wait for an answer. */
  asked: 1_000,
  /** Changes beyond which a diff is no longer counted line by line. */
  diff_edits: 1_000,

  lines: 200_000,
  lines_chars: 64 * KI * KI,
  /** A longer line goes on in the next row. */
  line_chars: 64 * KI,
  /** Colours that a line takes over from the ones before. */
  carry_chars: 256,
} as const;
