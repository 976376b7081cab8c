/** Limits of the module `core`. Names end with their unit. */

export const limits = {
  /** Shorter values are not redacted, because they would match ordinary text. */
  redact_bytes_min: 8,
  /** Longest part of a secret at the end of a read that is shown instead of being held back for long. */
  redact_shown_bytes_max: 7,
  /** Longest escape sequences, together, that may interrupt a secret, so that its beginning stays shorter than a read. */
  redact_sequences_bytes_max: 128 * 1024,
  /** The request rate of all tokens of a user together, as a multiple, so that one script does not lock out its user. */
  requests_user_factor: 4,
} as const;
