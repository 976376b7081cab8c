/** Limits of the feature `elicitations`. Names end with their unit. */
import { KIB } from '../../base/limits.ts';

export const limits = {
  /** Size of an answer to a form. */
  elicitation_content_chars_max: 256 * KIB,
} as const;
