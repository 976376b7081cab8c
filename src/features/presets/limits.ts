/** Limits of the feature `presets`. Names end with their unit. */

export const limits = {
  /** How long the findings of a node are cached. */
  presets_keep_ms: 60_000,
} as const;
