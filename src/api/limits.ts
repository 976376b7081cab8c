/** Limits of the module `api`. Names end with their unit. */

export const limits = {
  /** Unknown fields that a response names. */
  ignored_fields_max: 32,
  /** Longest name of an unknown field in a response. */
  ignored_field_chars_max: 64,
  /** Words of a search text, because a search takes time for each word and event. */
  search_words_max: 32,
} as const;
