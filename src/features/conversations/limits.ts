/** Limits of the feature `conversations`. Names end with their unit. */

export const limits = {
  /** Requests to an agent that wait for its answer. */
  acp_asked_max: 100,
  /** After this time without an answer, an agent is reported as silent. */
  acp_silent_ms: 60_000,
  /** The same for the request that opens a conversation, because the agent may load a long one or install its tools. */
  acp_opening_ms: 300_000,
  /** How long a request waits for the agent's answer. */
  acp_answer_ms: 15_000,
  /** Queued prompts of an agent. */
  prompts_waiting_max: 100,
  /** Content blocks of a prompt. */
  prompt_blocks_max: 100,
  /** Tool calls whose state the CLI keeps. */
  transcript_kept_max: 1_000,
  /** Lines of a diff that the CLI shows. */
  transcript_diff_lines: 100,
  /** Time to compute such a diff. */
  transcript_diff_ms: 100,
  /** Input of a tool call that the CLI shows. */
  transcript_input_chars: 200,
} as const;
