/** Limits of the feature `notifications`. Names end with their unit. */

const DAY_MS = 24 * 60 * 60 * 1000;

export const limits = {
  /** Longest endpoint URL. */
  push_endpoint_chars_max: 2_048,
  /** Longest key of a subscription. */
  push_key_chars_max: 128,
  /** Devices of one user. */
  push_subscriptions_per_user: 20,
  /** Stored messages of one device. */
  push_messages_per_subscription: 100,
  /** A message is not sent after this much time. */
  push_message_ms: DAY_MS,
  /** A test message is not sent after this much time. */
  push_test_ms: 60_000,
  /** An agent that fails repeatedly is reported at most this often. */
  push_again_ms: 10 * 60 * 1000,
  /** Longest text of a notification. */
  push_text_chars_max: 200,
  /** How long to wait for the response of a push service. */
  push_send_ms: 10_000,
  /** Requests to push services at the same time. */
  push_sends_at_once: 16,
  /** Requests to push services at the same time for one user. */
  push_sends_per_user: 4,
  /** First delay after an error of a push service. */
  push_backoff_ms: 10_000,
  /** Longest delay after an error of a push service. */
  push_backoff_ms_max: 60 * 60 * 1000,
  /** Failures in a row after which a device expires. */
  push_failures_max: 30,
  /** Largest number on the badge. */
  push_waiting_max: 99,
} as const;
