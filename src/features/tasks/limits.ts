/** Limits of the feature `tasks`. Names end with their unit. */
import { KIB } from '../../base/limits.ts';

export const limits = {
  /** Longest description of a task. */
  task_description_chars_max: 16 * KIB,
  /** Messages of a task thread. */
  task_messages_max: 10_000,
  /** Messages of the thread that a run gets. */
  task_context_messages_max: 50,
  /** Total length of the messages of the thread that a run gets. */
  task_context_chars_max: 32 * KIB,
  /** Size of a message. */
  message_bytes_max: 32 * KIB,
} as const;
