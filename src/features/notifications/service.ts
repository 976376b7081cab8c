/**
 * Notification settings of users: the key with which browsers subscribe, a user's own devices, a test that reports
 * its result, and new keys. No user sees another user's devices, not even root.
 */
import { ECDH } from 'node:crypto';
import { newId } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { type Page, type PageRequest, page, readCursor } from '../../core/page.ts';
import { authorize } from '../../core/policy.ts';
import { Problem, problems } from '../../core/problem.ts';
import { requireLiveToken } from '../../store/live-tokens.ts';
import type { Reader, Tx } from '../../store/store.ts';
import type { FactHandlers } from '../../work/facts.ts';
import type { Caller } from '../accounts/rules.ts';
import { Delivery, type DeliveryDeps } from './delivery.ts';
import { checkEndpoint } from './endpoint.ts';
import { newPair, PushKeys } from './keys.ts';
import { limits } from './limits.ts';
import { testMessage } from './messages.ts';
import { Notifier } from './notifier.ts';
import {
  deleteOldMessages,
  deleteSubscription,
  findPushKey,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  type SubscriptionRow,
  subscriptionOfEndpoint,
  toSubscription,
  updateSubscription,
} from './queries.ts';
import { waitingFor } from './recipients.ts';
import type { PushKind, PushSubscriptionRecord } from './rules.ts';
import { type Outcome, Sender } from './sender.ts';

export interface PushDeps extends Omit<DeliveryDeps, 'keys' | 'sender'> {
  /** 32 bytes, see `secret-key.ts`. */
  key: Uint8Array;
  /** `push.origins`. */
  own_origins: readonly string[];
  /** The contact for push services: a `mailto:` or `https:` address. */
  subject: string;
}

/** A subscription as the browser sends it, and the notifications that its user wants. */
export interface SubscriptionRequest {
  endpoint: string;
  keys: { p256dh: string; auth: string };
  /** The key with which the browser subscribed; absent: the current one. */
  public_key?: string | undefined;
  kinds: PushKind[];
  with_commands: boolean;
  of_others: boolean;
  /** The endpoint that this one replaces. */
  replaces?: string | undefined;
}

export interface TestResult {
  subscription_id: string;
  ok: boolean;
  error: string | null;
}

const POINT_BYTES = 65;
const SECRET_BYTES = 16;

export class Push {
  readonly #deps: PushDeps;
  readonly #keys: PushKeys;
  readonly #sender: Sender;
  readonly #delivery: Delivery;
  readonly #notifier: Notifier;
  readonly #testing = new Set<string>();

  constructor(deps: PushDeps) {
    this.#deps = deps;
    this.#keys = new PushKeys(deps);
    this.#sender = new Sender(deps);
    this.#delivery = new Delivery({ ...deps, keys: this.#keys, sender: this.#sender });
    this.#notifier = new Notifier(deps);
  }

  facts(): FactHandlers {
    return this.#notifier.facts();
  }

  intents(): ReturnType<Delivery['intents']> {
    return this.#delivery.intents();
  }

  timers(): ReturnType<Delivery['timers']> {
    return this.#delivery.timers();
  }

  close(): Promise<void> {
    return this.#delivery.close();
  }

  /** Deletes messages that are no longer needed, and returns how many. */
  sweep(): Promise<number> {
    return this.#deps.store.write(async (tx) => {
      await this.#delivery.capPauses(tx);
      return deleteOldMessages(tx, this.#deps.clock.now());
    });
  }

  /** The `applicationServerKey` for browsers. */
  async publicKey(): Promise<string> {
    return (await this.#keys.current()).publicKey;
  }

  /** The caller's own, newest first. */
  list(caller: Caller, request: PageRequest): Promise<Page<PushSubscriptionRecord>> {
    const limit =
      request.limit ??
      (request.cursor === undefined ? limits.push_subscriptions_per_user : sharedLimits.page_items_default);
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#deps.store.read(async (reader) => {
      const rows = await listSubscriptions(reader, caller.user_id, { before_num, limit: limit + 1 });
      return page(
        rows,
        limit,
        (row) => toSubscription(row, caller),
        ({ num }) => [num],
      );
    });
  }

  /** Subscribes a device. A known endpoint is updated and bound to the caller's token. Returns the current record. */
  async subscribe(
    caller: Caller,
    request: SubscriptionRequest,
    user_agent: string | null,
  ): Promise<PushSubscriptionRecord> {
    // Only those with read access may get its notifications.
    authorize(caller, 'reviews.list');
    const { store, clock, audit, timers, own_origins } = this.#deps;
    const endpoint = checkEndpoint(request.endpoint, own_origins);
    checkKeys(request.keys);
    await this.#keys.current();
    const id = newId('psh');
    return store.write(async (tx) => {
      // The end of a token deletes its subscriptions, so none may be added after it.
      await requireLiveToken(tx, caller);
      const public_key = (await findPushKey(tx))!.public_key;
      if (request.public_key !== undefined && request.public_key !== public_key)
        throw problems.pushKeyChanged();
      const { p256dh, auth } = request.keys;
      await this.#replace(tx, caller, request.replaces);
      const before = await this.#findOwn(tx, caller, endpoint, request.keys);
      const of_others = request.of_others && caller.role === 'root' ? 1 : 0;
      const row = {
        ...{ user_id: caller.user_id, token_id: caller.token_id, endpoint, p256dh, auth, public_key },
        user_agent: user_agent?.slice(0, sharedLimits.user_agent_chars_max) ?? null,
        kinds: JSON.stringify([...new Set(request.kinds)]),
        with_commands: request.with_commands ? 1 : 0,
        of_others,
        ...{ status: 'active' as const, failures: 0, last_error: null, retry_at: null },
      };
      if (before) {
        await timers.clear(tx, 'push_retry', before.id);
        await updateSubscription(tx, before.num, row);
      } else {
        if ((await countDevices(tx, caller)) >= limits.push_subscriptions_per_user)
          throw problems.tooManyPush();
        await insertSubscription(tx, { ...row, id, created_at: clock.now() });
      }
      const created = toSubscription((await findSubscription(tx, before?.id ?? id))!, caller);
      const { kinds, with_commands, service } = created;
      const details = {
        subscription_id: created.id,
        service,
        kinds,
        with_commands,
        of_others: created.of_others,
      };
      await audit.record(tx, { event: 'push_subscribed', user_id: caller.user_id, ip: caller.ip, details });
      return created;
    });
  }

  /** Deletes the subscription of one of the caller's own devices. Throws a 404 for any other id. */
  async unsubscribe(caller: Caller, id: string): Promise<void> {
    await this.#deps.store.write(async (tx) => this.#delete(tx, caller, await mustFind(tx, caller, id)));
  }

  /** Sends a test to one of the caller's devices, or to all of them, and returns the responses of their push services. */
  async test(caller: Caller, id: string | undefined): Promise<TestResult[]> {
    const { store, audit } = this.#deps;
    if (this.#testing.has(caller.user_id)) {
      throw new Problem('rate_limited', 'rate_limited', 'a test is in progress', { retry_after_s: 10 });
    }
    this.#testing.add(caller.user_id);
    try {
      const { devices, waiting } = await store.read(async (reader) => ({
        devices:
          id === undefined
            ? await listSubscriptions(reader, caller.user_id)
            : [await mustFind(reader, caller, id)],
        waiting: await waitingFor(reader, caller),
      }));
      const results = await Promise.all(devices.map((device) => this.#test(device, waiting)));
      await store.write(async (tx) => {
        const details = {
          sent: results.filter(({ ok }) => ok).length,
          failed: results.filter(({ ok }) => !ok).length,
        };
        await audit.record(tx, { event: 'push_tested', user_id: caller.user_id, ip: caller.ip, details });
      });
      return results;
    } finally {
      this.#testing.delete(caller.user_id);
    }
  }

  /** Creates a new key. Every device must subscribe again, which happens when its user opens the web UI there. */
  async rotate(caller: Caller): Promise<string> {
    authorize(caller, 'push.manage');
    const { store, audit } = this.#deps;
    const pair = newPair();
    await store.write(async (tx) => {
      const details = await this.#keys.put(tx, pair);
      await audit.record(tx, { event: 'push_keys_rotated', user_id: caller.user_id, ip: caller.ip, details });
    });
    return pair.publicKey;
  }

  async #test(device: SubscriptionRow, waiting: number): Promise<TestResult> {
    const { store } = this.#deps;
    const { id: subscription_id } = device;
    const key = await this.#keys.current();
    if (device.public_key !== key.publicKey) {
      return { subscription_id, ok: false, error: problems.pushKeyChanged().message };
    }
    const message = { ...testMessage(), waiting };
    const outcome = await this.#sender.send(device, key, message, limits.push_test_ms);
    await store.write(async (tx) => {
      const now = await findSubscription(tx, subscription_id);
      if (now) await this.#delivery.recordOutcome(tx, now, outcome);
    });
    return { subscription_id, ...toResult(outcome) };
  }

  /** Removes an earlier endpoint that the device reports as replaced, only if it belongs to the caller. */
  async #replace(tx: Tx, caller: Caller, endpoint: string | undefined): Promise<void> {
    const before = endpoint === undefined ? undefined : await subscriptionOfEndpoint(tx, endpoint);
    if (before?.user_id === caller.user_id) await deleteSubscription(tx, before.num);
  }

  /**
   * The caller's device with this endpoint. A browser in which another user was signed in before now belongs to the
   * caller.
   */
  async #findOwn(
    tx: Tx,
    caller: Caller,
    endpoint: string,
    { p256dh, auth }: { p256dh: string; auth: string },
  ): Promise<SubscriptionRow | undefined> {
    const before = await subscriptionOfEndpoint(tx, endpoint);
    if (!before || before.user_id === caller.user_id) return before;
    if (before.p256dh !== p256dh || before.auth !== auth) throw problems.pushTaken();
    await this.#delete(tx, caller, before);
    return undefined;
  }

  async #delete(tx: Tx, { user_id, ip }: Caller, row: SubscriptionRow): Promise<void> {
    const { audit, timers } = this.#deps;
    await timers.clear(tx, 'push_retry', row.id);
    await deleteSubscription(tx, row.num);
    const details = { subscription_id: row.id, subject_id: row.user_id };
    await audit.record(tx, { event: 'push_unsubscribed', user_id, ip, details });
  }
}

async function mustFind(reader: Reader, caller: Caller, id: string): Promise<SubscriptionRow> {
  const row = await findSubscription(reader, id);
  if (row?.user_id !== caller.user_id) throw problems.pushNotFound();
  return row;
}

async function countDevices(reader: Reader, { user_id }: Caller): Promise<number> {
  return (await listSubscriptions(reader, user_id)).length;
}

/** Throws unless a message can be encrypted for the device: its public key must be a point on the curve. */
function checkKeys({ p256dh, auth }: { p256dh: string; auth: string }): void {
  const point = Buffer.from(p256dh, 'base64url');
  const secret = Buffer.from(auth, 'base64url');
  try {
    if (point.length !== POINT_BYTES || point[0] !== 4 || secret.length !== SECRET_BYTES) throw new Error();
    ECDH.convertKey(point, 'prime256v1');
  } catch {
    throw problems.pushKeysInvalid();
  }
}

function toResult(outcome: Outcome): { ok: boolean; error: string | null } {
  if (outcome.kind === 'accepted') return { ok: true, error: null };
  const { error } = outcome;
  return { ok: false, error: outcome.kind === 'gone' ? `${error}: the device was removed` : error };
}
