/**
 * Messages on their way to devices: an intent each, in order per device, and a timer where a push service asks for time. A
 * try is written down before it is made: a plane that is killed in between makes it once more, and the tag makes the
 * second one take the place of the first.
 */
import type { Clock } from '../../base/clock.ts';
import { limits } from '../../base/limits.ts';
import type { Logger } from '../../base/log.ts';
import { MAIN_NODE } from '../../domain/node.ts';
import type { PushMessage } from '../../domain/push.ts';
import type { IntentHandlers, Outbox } from '../../flow/outbox.ts';
import {
  deleteMessage,
  deleteSubscription,
  findMessage,
  findSubscription,
  type PushMessageRow,
  pendingMessages,
  type SubscriptionRow,
  updateMessage,
  updateSubscription,
} from '../../store/push.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { TimerHandlers, Timers } from '../../timers/timers.ts';
import type { Audit } from '../audit.ts';
import type { PushKeyPair, PushKeys } from './keys.ts';
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

/** Kinds that are remembered after they were sent: what is still on the screen is replaced one day, or not repeated soon. */
const remembered = new Set<PushMessage['kind']>(['review', 'agent_failed']);

export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #running = new Set<Promise<void>>();

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  intents(): Pick<IntentHandlers, 'push'> {
    return {
      push: async ({ session_id: subscription_id, payload }) => {
        const running = this.#deliver(subscription_id, payload.message_num);
        this.#running.add(running);
        await running.finally(() => this.#running.delete(running));
      },
    };
  }

  timers(): Pick<TimerHandlers, 'push_retry'> {
    return {
      push_retry: (tx, { ref }) => {
        const row = findSubscription(tx, ref);
        if (row?.status !== 'active') return;
        updateSubscription(tx, row.num, { retry_at: null });
        for (const { num } of pendingMessages(tx, row.num)) {
          this.#deps.outbox.enqueue(tx, MAIN_NODE, row.id, 'push', { message_num: num });
        }
      },
    };
  }

  /** What is under way is broken off, and goes on with the next start. */
  async close(): Promise<void> {
    this.#deps.sender.close();
    await Promise.allSettled(this.#running);
  }

  async #deliver(subscription_id: string, message_num: number): Promise<void> {
    const { store, clock, keys, sender } = this.#deps;
    const key = await keys.current();
    const found = await store.write((tx) => this.#take(tx, subscription_id, message_num, key));
    if (found === null) return;
    const { device, row } = found;
    const message = JSON.parse(row.message) as PushMessage;
    const outcome = await sender.send(device, key, message, row.expires_at - clock.now());
    // Broken off, or sent and not known to be: the intent is kept.
    if (sender.closed && outcome.kind !== 'taken') throw new Error('the service stops');
    await store.write((tx) => {
      const now = findSubscription(tx, subscription_id);
      if (!now) return;
      this.settle(tx, now, outcome);
      const sent = findMessage(tx, message_num);
      // Replaced in the meantime: that one has an intent of its own.
      if (!sent || sent.fact_id !== row.fact_id || sent.state !== 'pending') return;
      if (outcome.kind === 'taken' && remembered.has(message.kind)) {
        updateMessage(tx, message_num, { state: 'sent', sent_at: clock.now() });
      } else if (outcome.kind !== 'later') {
        deleteMessage(tx, message_num);
      }
    });
  }

  /** What is to be sent now, marked as tried; null when there is nothing, or the device is to be left alone. */
  #take(
    tx: Tx,
    subscription_id: string,
    message_num: number,
    key: PushKeyPair,
  ): { device: SubscriptionRow; row: PushMessageRow } | null {
    const now = this.#deps.clock.now();
    const device = findSubscription(tx, subscription_id);
    const row = findMessage(tx, message_num);
    if (device?.status !== 'active' || device.public_key !== key.publicKey) return null;
    if (row?.subscription_num !== device.num || row.state !== 'pending') return null;
    if (row.expires_at <= now) {
      deleteMessage(tx, row.num);
      return null;
    }
    if ((device.retry_at ?? 0) > now) return null;
    updateMessage(tx, row.num, { attempts: row.attempts + 1 });
    return { device, row };
  }

  /** What a push service answered, written down with the device. */
  settle(tx: Tx, device: SubscriptionRow, outcome: Outcome): void {
    const { clock, timers, audit, log } = this.#deps;
    if (outcome.kind === 'taken') {
      timers.clear(tx, 'push_retry', device.id);
      const good = { failures: 0, last_error: null, last_success_at: clock.now(), retry_at: null };
      // What is left from worse times goes now.
      const waits = device.retry_at !== null;
      updateSubscription(tx, device.num, { status: 'active', ...good });
      if (waits) timers.set(tx, 'push_retry', device.id, clock.now(), {});
      return;
    }
    if (outcome.kind === 'gone') {
      timers.clear(tx, 'push_retry', device.id);
      deleteSubscription(tx, device.num);
      const details = { subscription_id: device.id, subject_id: device.user_id, why: outcome.error };
      audit.record(tx, { event: 'push_unsubscribed', user_id: null, ip: null, details });
      return;
    }
    const failures = device.failures + 1;
    const last_error = outcome.error;
    log.info({ subscription_id: device.id, failures, why: last_error }, 'a notification was not taken');
    if (failures >= limits.push_failures_max) {
      timers.clear(tx, 'push_retry', device.id);
      for (const { num } of pendingMessages(tx, device.num)) deleteMessage(tx, num);
      updateSubscription(tx, device.num, { status: 'expired', failures, last_error, retry_at: null });
      return;
    }
    if (outcome.kind === 'refused') {
      updateSubscription(tx, device.num, { failures, last_error });
      return;
    }
    const backoff_ms = limits.push_backoff_ms * 2 ** Math.min(failures - 1, 20);
    const wait_ms = Math.max(outcome.retry_after_ms, Math.min(backoff_ms, limits.push_backoff_ms_max));
    const retry_at = clock.now() + wait_ms;
    updateSubscription(tx, device.num, { failures, last_error, retry_at });
    timers.set(tx, 'push_retry', device.id, retry_at, {});
  }
}
