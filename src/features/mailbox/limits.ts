/** Limits of the feature `mailbox`. Names end with their unit. */
import { KIB, MIB } from '../../base/limits.ts';

export const limits = {
  /** Payload of a message. */
  mail_payload_bytes_max: 64 * KIB,
  /** Messages of a run. */
  mails_per_run_max: 10_000,
  /** Messages in a chain of answers, so that two agents cannot loop. */
  mail_hops_max: 32,
  /** Messages that an inbox returns. */
  mail_inbox_items: 50,
  /** Messages that `svc actor inbox` returns. */
  actor_inbox_items_max: 40,
  /** How long one call of `svc actor receive` waits on the plane. */
  actor_receive_ms: 5_000,
  /** Unacknowledged messages that a prompt names. */
  mail_named_max: 20,
  /** Part of a payload that a prompt shows. */
  mail_named_chars: 2_000,
  /** After this time, a run reports unacknowledged mail. */
  mail_unacknowledged_ms: 10 * 60 * 1000,
  /** Wait before mail is offered again to a member whose step is about to start or end. */
  mail_check_ms: 1_000,
  /** Delay before the fleet feed announces whose mail has changed. */
  mail_announced_ms: 500,
  /** How long one request can wait for mail. */
  mail_wait_s_max: 60,
  /** Calls that wait for mail at the same time. The owner is a user, or the operator. */
  mail_waiters: { per_owner: 500, total: 1_000 },
  /** The same for a session, which is less than `actor_receives_max`, so that other sessions can wait too. */
  mail_waiters_per_session: 8,
  /** Time triggers of a run. */
  triggers_per_run_max: 100,
  /** Payloads of a run's time triggers together, so that `svc actor time-trigger-list` can return all of them. */
  triggers_per_run_bytes_max: 2 * MIB,
  /** Shortest interval of a trigger. */
  trigger_every_s_min: 10,
  /** Longest interval of a trigger. */
  trigger_every_s_max: 366 * 24 * 60 * 60,
  /** Longest cron pattern. */
  trigger_cron_chars_max: 256,
  /** Longest name of a time zone. */
  trigger_zone_chars_max: 64,
} as const;
