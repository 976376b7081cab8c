/**
 * Answers kept under their `Idempotency-Key` for a day. Requests are remembered as keyed hashes and bodies are sealed,
 * both with a key from outside the database, because bodies hold passwords and answers hold new tokens. A request that
 * never came to its answer leaves its row without one: the same request then runs again, with the same ids.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { limits } from '../base/limits.ts';
import type { Idempotency, StoredAnswer } from '../domain/idempotency.ts';
import { problems } from '../domain/problem.ts';
import type { Store, Tx } from '../store/store.ts';

interface Running {
  digest: Buffer;
  ended: Promise<void>;
}

export interface IdempotencyDeps {
  store: Store;
  clock: Clock;
  /** 32 bytes, see `secret-key.ts`. */
  key: Uint8Array;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class IdempotencyKeys implements Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #hashKey: Uint8Array;
  readonly #sealKey: Uint8Array;
  readonly #running = new Map<string, Running>();

  constructor(deps: IdempotencyDeps) {
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#hashKey = subkey(deps.key, 'idempotency request');
    this.#sealKey = subkey(deps.key, 'idempotency answer');
  }

  async begin(
    caller: { user_id: string },
    key: string,
    request_hash: Uint8Array,
  ): ReturnType<Idempotency['begin']> {
    const user_id = caller.user_id;
    const name = JSON.stringify([user_id, key]);
    const digest = createHmac('sha256', this.#hashKey).update(request_hash).digest();
    for (let other = this.#running.get(name); other; other = this.#running.get(name)) {
      if (!other.digest.equals(digest)) throw problems.idempotencyReused();
      await other.ended;
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(name, { digest, ended });
    const end = () => {
      this.#running.delete(name);
      resolve();
    };
    try {
      const stored = await this.#store.write((tx) => this.#open(tx, user_id, key, digest));
      if (stored) {
        end();
        return { stored };
      }
    } catch (error) {
      end();
      throw error;
    }
    return {
      first: {
        keep: (answer) => this.#keep(user_id, key, answer).finally(end),
        release: () => this.#release(user_id, key).finally(end),
      },
    };
  }

  /** Deletes what is older than a day. */
  sweep(): Promise<number> {
    const before = this.#clock.now() - limits.idempotency_keep_ms;
    return this.#store.write(
      (tx) => tx.run(tx.sql.deleteFrom('idempotency').where('created_at', '<=', before)).changes,
    );
  }

  #open(tx: Tx, user_id: string, key: string, request_hash: Buffer): StoredAnswer | null {
    const now = this.#clock.now();
    const row = tx.get(
      tx.sql.selectFrom('idempotency').selectAll().where('user_id', '=', user_id).where('key', '=', key),
    );
    if (row && row.created_at > now - limits.idempotency_keep_ms) {
      if (!timingSafeEqual(row.request_hash, request_hash)) throw problems.idempotencyReused();
      if (row.status === null) return null;
      const { status, location } = row;
      return row.body === null
        ? { status, location }
        : { status, location, body: this.#unseal(user_id, key, row.body) };
    }
    const empty = { status: null, body: null, location: null };
    const fresh = { user_id, key, request_hash, created_at: now, ...empty };
    tx.run(tx.sql.replaceInto('idempotency').values(fresh));
    return null;
  }

  async #keep(user_id: string, key: string, answer: StoredAnswer): Promise<void> {
    await this.#store.write((tx) => this.keepWith(tx, { user_id }, key, answer));
  }

  /** In the transaction of an act that must not be repeated: from its commit on, this is the answer. */
  keepWith(tx: Tx, { user_id }: { user_id: string }, key: string, answer: StoredAnswer): void {
    const { status, location } = answer;
    const body = answer.body === undefined ? null : this.#seal(user_id, key, answer.body);
    tx.run(
      tx.sql
        .updateTable('idempotency')
        .set({ status, location, body })
        .where('user_id', '=', user_id)
        .where('key', '=', key),
    );
  }

  async #release(user_id: string, key: string): Promise<void> {
    await this.#store.write((tx) =>
      tx.run(tx.sql.deleteFrom('idempotency').where('user_id', '=', user_id).where('key', '=', key)),
    );
  }

  #seal(user_id: string, key: string, body: unknown): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#sealKey, nonce).setAAD(bound(user_id, key));
    const sealed = [cipher.update(JSON.stringify(body), 'utf8'), cipher.final()];
    return JSON.stringify(Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString('base64'));
  }

  #unseal(user_id: string, key: string, text: string): unknown {
    const bytes = Buffer.from(JSON.parse(text) as string, 'base64');
    const cipher = createDecipheriv('aes-256-gcm', this.#sealKey, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    })
      .setAAD(bound(user_id, key))
      .setAuthTag(bytes.subarray(-TAG_BYTES));
    const open = [cipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), cipher.final()];
    return JSON.parse(Buffer.concat(open).toString('utf8'));
  }
}

function subkey(key: Uint8Array, use: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, '', use, 32));
}

function bound(user_id: string, key: string): Buffer {
  return Buffer.from(JSON.stringify([user_id, key]));
}
