/**
 * Delivers messages to devices. Each message has one intent, and each device's messages are sent in order; a timer is set if
 * a push service asks for a delay. Each attempt is recorded before it is made. If the plane is killed in between, the
 * message is sent once more, and its tag makes it replace the first one.
 */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { MAIN_NODE } from '../../core/node.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { IntentHandlers, Outbox } from '../../work/outbox.ts';
import type { TimerHandlers, Timers } from '../../work/timers.ts';
import type { Audit } from '../audit/service.ts';
import type { PushKeyPair, PushKeys } from './keys.ts';
import { limits } from './limits.ts';
import {
  deleteMessage,
  deleteSubscription,
  findMessage,
  findPushKey,
  findSubscription,
  type PushMessageRow,
  pendingMessages,
  type SubscriptionRow,
  updateMessage,
  updateSubscription,
} from './queries.ts';
import { closingText, findSubject, mayReceive, waitingFor } from './recipients.ts';
import type { PushMessage } from './rules.ts';
import type { Outcome, Sender } from './sender.ts';

export interface DeliveryDeps {
  store: Store;
  clock: Clock;
  log: Logger;
  audit: Audit;
  outbox: Outbox;
  timers: Timers;
  keys: PushKeys;
  sender: Sender;
}

/**
 * Kinds of messages that are kept after they were sent, because a later message replaces them on the screen or because they
 * must not be repeated soon.
 */
const remembered = new Set<PushMessage['kind']>(['review', 'agent_failed']);

export class Delivery {
  readonly #deps: DeliveryDeps;
  /** By device: a response that could not be recorded, for example because of conflicts on PostgreSQL. It is not requested again. */
  readonly #unrecorded = new Map<string, { attempt: string; outcome: Outcome }>();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  intents(): Pick<IntentHandlers, 'push'> {
    return {
      push: async ({ lane: subscription_id, payload }) => {
        const running = this.#deliver(subscription_id, payload.message_num);
        this.#running.add(running);
        await running.finally(() => this.#running.delete(running));
      },
    };
  }

  timers(): Pick<TimerHandlers, 'push_retry'> {
    return {
      push_retry: async (tx, { ref }) => {
        const row = await findSubscription(tx, ref);
        if (row?.status !== 'active') return;
        await updateSubscription(tx, row.num, { retry_at: null });
        for (const { num } of await pendingMessages(tx, row.num)) {
          await this.#deps.outbox.enqueue(tx, MAIN_NODE, row.id, 'push', { message_num: num });
        }
      },
    };
  }

  /** Shortens pauses that began while the clock was ahead, so that none is longer than the longest pause. */
  async capPauses(tx: Tx): Promise<void> {
    await this.#deps.timers.cap(tx, 'push_retry', limits.push_backoff_ms_max);
  }

  /** Aborts deliveries in progress. They continue after the next start. */
  async close(): Promise<void> {
    this.#deps.sender.close();
    await Promise.allSettled(this.#running);
  }

  async #deliver(subscription_id: string, message_num: number): Promise<void> {
    const { store, clock, keys, sender } = this.#deps;
    const key = await keys.current();
    const found = await store.write((tx) => this.#take(tx, subscription_id, message_num, key));
    if (found === null) return;
    const { device, row, message } = found;
    // A message of the time when the clock was ahead expires too late.
    const ttl_ms = Math.min(row.expires_at - clock.now(), limits.push_message_ms);
    const attempt = `${message_num} ${row.fact_id}`;
    const before = this.#unrecorded.get(subscription_id);
    const outcome =
      before?.attempt === attempt ? before.outcome : await sender.send(device, key, message, ttl_ms);
    // The delivery was aborted, or its result is unknown, so the intent is kept.
    if (sender.closed && outcome.kind !== 'accepted') throw new Error('the service is stopping');
    this.#unrecorded.set(subscription_id, { attempt, outcome });
    await store.write(async (tx) => {
      const now = await findSubscription(tx, subscription_id);
      if (!now) return;
      await this.recordOutcome(tx, now, outcome);
      const sent = await findMessage(tx, message_num);
      // The message was replaced in the meantime, and the new one has its own intent.
      if (!sent || sent.fact_id !== row.fact_id || sent.state !== 'pending') return;
      if (outcome.kind === 'accepted' && remembered.has(message.kind)) {
        await updateMessage(tx, message_num, { state: 'sent', sent_at: clock.now() });
      } else if (outcome.kind !== 'later') {
        await deleteMessage(tx, message_num);
      }
    });
    this.#unrecorded.delete(subscription_id);
  }

  /**
   * Returns the message to send now, and counts the attempt. Returns null if there is none, or if the device must not be contacted
   * yet. If the user has lost access to the subject in the meantime, the message only replaces a notification that the device may
   * already show.
   */
  async #take(
    tx: Tx,
    subscription_id: string,
    message_num: number,
    key: PushKeyPair,
  ): Promise<{ device: SubscriptionRow; row: PushMessageRow; message: PushMessage } | null> {
    const now = this.#deps.clock.now();
    const device = await findSubscription(tx, subscription_id);
    const row = await findMessage(tx, message_num);
    if (device?.status !== 'active' || device.public_key !== key.publicKey) return null;
    if (row?.subscription_num !== device.num || row.state !== 'pending') return null;
    if (row.expires_at <= now) {
      await deleteMessage(tx, row.num);
      return null;
    }
    if ((device.retry_at ?? 0) > now) return null;
    let message = JSON.parse(row.message) as PushMessage;
    const subject = await findSubject(tx, message.tag);
    if (subject === null || !mayReceive(device, subject)) {
      if (row.attempts === 0 && row.sent_at === null) {
        await deleteMessage(tx, row.num);
        return null;
      }
      const text = closingText(device, subject, message, { sent_at: row.sent_at, answered_by: null });
      message = { ...text, waiting: await waitingFor(tx, device) };
    }
    await updateMessage(tx, row.num, { attempts: row.attempts + 1, message: JSON.stringify(message) });
    return { device, row, message };
  }

  /** Records the response of a push service in the device's row, and schedules the next attempt if necessary. */
  async recordOutcome(tx: Tx, device: SubscriptionRow, outcome: Outcome): Promise<void> {
    const { clock, timers, audit, log } = this.#deps;
    if (outcome.kind === 'accepted') {
      // The keys were rotated meanwhile, so the device must subscribe again.
      if ((await findPushKey(tx))?.public_key !== device.public_key) return;
      await timers.clear(tx, 'push_retry', device.id);
      const good = { failures: 0, last_error: null, last_success_at: clock.now(), retry_at: null };
      // The push service works again, so the waiting messages are sent.
      const waits = device.retry_at !== null;
      await updateSubscription(tx, device.num, { status: 'active', ...good });
      if (waits) await timers.set(tx, 'push_retry', device.id, clock.now(), {});
      return;
    }
    if (outcome.kind === 'gone') {
      await timers.clear(tx, 'push_retry', device.id);
      await deleteSubscription(tx, device.num);
      const details = { subscription_id: device.id, subject_id: device.user_id, why: outcome.error };
      await audit.record(tx, { event: 'push_unsubscribed', user_id: null, ip: null, details });
      return;
    }
    const failures = device.failures + 1;
    const last_error = outcome.error;
    log.info({ subscription_id: device.id, failures, why: last_error }, 'a notification was not accepted');
    if (failures >= limits.push_failures_max) {
      await timers.clear(tx, 'push_retry', device.id);
      for (const { num } of await pendingMessages(tx, device.num)) await deleteMessage(tx, num);
      await updateSubscription(tx, device.num, { status: 'expired', failures, last_error, retry_at: null });
      return;
    }
    if (outcome.kind === 'refused') {
      await updateSubscription(tx, device.num, { failures, last_error });
      return;
    }
    const backoff_ms = limits.push_backoff_ms * 2 ** Math.min(failures - 1, 20);
    const wait_ms = Math.max(outcome.retry_after_ms, Math.min(backoff_ms, limits.push_backoff_ms_max));
    const retry_at = clock.now() + wait_ms;
    await updateSubscription(tx, device.num, { failures, last_error, retry_at });
    await timers.set(tx, 'push_retry', device.id, retry_at, {});
  }
}
