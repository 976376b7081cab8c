/**
 * Stores responses by `Idempotency-Key` for a day. Requests are stored as keyed hashes and bodies are encrypted, both with a
 * key from outside the database, because request bodies contain passwords and responses contain new tokens. If a request is
 * interrupted, or fails after it has changed something, its row remains without a response, and a repeated request runs with
 * the same ids.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { idFromKeyed } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import { seal, unseal } from '../base/sealing.ts';
import { subkey } from '../base/secret-key.ts';
import type { Idempotency, StoredAnswer } from '../core/idempotency.ts';
import { problems } from '../core/problem.ts';
import type { Store, Tx } from '../store/store.ts';
import {
  deleteResponsesBefore,
  deleteUnanswered,
  findResponse,
  putResponse,
  updateResponse,
} from './queries.ts';

interface Running {
  digest: Buffer;
  ended: Promise<void>;
  /** See `reserve`. */
  reserved: boolean;
}

export interface IdempotencyDeps {
  store: Store;
  clock: Clock;
  /** 32 bytes, see `secret-key.ts`. */
  key: Uint8Array;
}

export class IdempotencyKeys implements Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #hashKey: Uint8Array;
  readonly #sealKey: Uint8Array;
  readonly #idKey: Uint8Array;
  readonly #running = new Map<string, Running>();

  constructor(deps: IdempotencyDeps) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#hashKey = subkey(deps.key, 'idempotency request');
    this.#sealKey = subkey(deps.key, 'idempotency answer');
    this.#idKey = subkey(deps.key, 'idempotency id');
  }

  /**
   * The id of the agent that a caller's request creates for a key. A repeated request gets the same id. It cannot be
   * predicted.
   */
  agentId({ user_id }: { user_id: string }, key: string): string {
    return idFromKeyed('agt', this.#idKey, user_id, 'create', key);
  }

  /** See `Idempotency.begin`. The same user and key always belong to one request, until a day after it. */
  async begin(
    caller: { user_id: string },
    key: string,
    request_hash: Uint8Array,
  ): ReturnType<Idempotency['begin']> {
    const user_id = caller.user_id;
    const name = bound(user_id, key);
    const digest = createHmac('sha256', this.#hashKey).update(request_hash).digest();
    for (let other = this.#running.get(name); other; other = this.#running.get(name)) {
      if (!other.digest.equals(digest)) throw problems.idempotencyReused();
      await other.ended;
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const running: Running = { digest, ended, reserved: false };
    this.#running.set(name, running);
    const isRunning = () => this.#running.get(name) === running;
    const end = () => {
      if (isRunning()) this.#running.delete(name);
      resolve();
    };
    const release = async () => {
      if (isRunning() && !running.reserved) await this.#release(user_id, key);
    };
    try {
      const { stored, is_repeat } = await this.#store.write((tx) => this.#open(tx, user_id, key, digest));
      if (stored) {
        end();
        return { stored };
      }
      // The earlier request may have changed something.
      running.reserved = is_repeat;
    } catch (error) {
      end();
      throw error;
    }
    return {
      first: {
        keep: (answer) => this.#keep(user_id, key, answer).finally(end),
        release: () => release().finally(end),
      },
    };
  }

  /**
   * Reserves the key for the request in progress, which has changed something and may still fail. A repeated request then
   * continues it, and a different one is rejected.
   */
  reserve({ user_id }: { user_id: string }, key: string): void {
    const running = this.#running.get(bound(user_id, key));
    if (running) running.reserved = true;
  }

  /** Deletes rows older than a day; returns how many. */
  sweep(): Promise<number> {
    const before = this.#clock.now() - limits.idempotency_keep_ms;
    return this.#store.write((tx) => deleteResponsesBefore(tx, before));
  }

  /** `is_repeat`: an earlier request with this key got no response. */
  async #open(
    tx: Tx,
    user_id: string,
    key: string,
    request_hash: Buffer,
  ): Promise<{ stored: StoredAnswer | null; is_repeat: boolean }> {
    const now = this.#clock.now();
    const row = await findResponse(tx, user_id, key);
    if (row && row.created_at > now - limits.idempotency_keep_ms) {
      if (!timingSafeEqual(row.request_hash, request_hash)) throw problems.idempotencyReused();
      if (row.status === null) return { stored: null, is_repeat: true };
      const { status, location, body, headers } = row;
      const sealed = (text: string) => this.#unseal(user_id, key, text);
      const stored = {
        ...{ status, location },
        ...(body !== null && { body: sealed(body) }),
        ...(headers !== null && { headers: sealed(headers) as Record<string, string> }),
      };
      return { stored, is_repeat: true };
    }
    const empty = { status: null, body: null, location: null, headers: null };
    await putResponse(tx, { user_id, key, request_hash, created_at: now, ...empty });
    return { stored: null, is_repeat: false };
  }

  async #keep(user_id: string, key: string, answer: StoredAnswer): Promise<void> {
    await this.#store.write((tx) => this.storeWith(tx, { user_id }, key, answer));
  }

  /**
   * Stores the response in the transaction of an operation that must not be repeated. From its commit on, repeated requests
   * get this response.
   */
  async storeWith(
    tx: Tx,
    { user_id }: { user_id: string },
    key: string,
    answer: StoredAnswer,
  ): Promise<void> {
    const { status, location } = answer;
    const seal = (value: unknown) => (value === undefined ? null : this.#seal(user_id, key, value));
    const [body, headers] = [seal(answer.body), seal(answer.headers)];
    await updateResponse(tx, user_id, key, { status, location, body, headers });
  }

  async #release(user_id: string, key: string): Promise<void> {
    await this.#store.write((tx) => deleteUnanswered(tx, user_id, key));
  }

  #seal(user_id: string, key: string, body: unknown): string {
    const text = JSON.stringify(body);
    return JSON.stringify(seal(this.#sealKey, bound(user_id, key), Buffer.from(text)).toString('base64'));
  }

  #unseal(user_id: string, key: string, text: string): unknown {
    const bytes = Buffer.from(JSON.parse(text) as string, 'base64');
    return JSON.parse(unseal(this.#sealKey, bound(user_id, key), bytes).toString('utf8'));
  }
}

function bound(user_id: string, key: string): string {
  return JSON.stringify([user_id, key]);
}
