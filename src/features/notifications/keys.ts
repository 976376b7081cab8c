/**
 * The key pair with which the plane identifies itself to push services (VAPID). It is created on first use. The database
 * stores its private half, encrypted with a key that is stored outside the database. A device subscribes for one key pair
 * and must subscribe again if the pair changes.
 */
import { createECDH, hkdfSync } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { seal, unseal } from '../../base/sealing.ts';
import type { Store, Tx } from '../../store/store.ts';
import { expireSubscriptions, findPushKey, putPushKey } from './queries.ts';

/** Both base64url, the format of push libraries and browsers. */
export interface PushKeyPair {
  publicKey: string;
  privateKey: string;
}

const PRIVATE_BYTES = 32;
const CHANGED = 'the keys of the service have changed: open svc on this device';

export class PushKeys {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #sealKey: Uint8Array;
  #known: PushKeyPair | null = null;
  /** Incremented when the pair is replaced. One that was read before may be stale. */
  #generation = 0;

  /** `key`: 32 bytes, see `secret-key.ts`. */
  constructor({ store, clock, key }: { store: Store; clock: Clock; key: Uint8Array }) {
    this.#store = store;
    this.#clock = clock;
    this.#sealKey = new Uint8Array(hkdfSync('sha256', key, '', 'push key', 32));
    store.wakes.on('push_keys', () => {
      this.#generation += 1;
      this.#known = null;
    });
  }

  /** Creates the key pair if there is none, or if it cannot be decrypted. */
  async current(): Promise<PushKeyPair> {
    if (this.#known) return this.#known;
    const generation = this.#generation;
    const row = await this.#store.read(findPushKey);
    if (generation !== this.#generation) return this.current();
    const stored = row ? this.#open(row) : null;
    if (stored) {
      this.#known = stored;
      return stored;
    }
    const fresh = newPair();
    return this.#store.write(async (tx) => {
      // Another process may have been first.
      const now = await findPushKey(tx);
      const found = now ? this.#open(now) : null;
      if (found === null) await this.put(tx, fresh);
      return found ?? fresh;
    });
  }

  /** Replaces the key, effective with the commit. Devices that subscribed for an earlier key get no more notifications. */
  async put(tx: Tx, pair: PushKeyPair): Promise<{ devices: number }> {
    const sealed = this.#seal(pair);
    await putPushKey(tx, { public_key: pair.publicKey, sealed, created_at: this.#clock.now() });
    tx.wake('push_keys', null);
    return { devices: await expireSubscriptions(tx, CHANGED) };
  }

  #seal({ publicKey, privateKey }: PushKeyPair): Uint8Array {
    return seal(this.#sealKey, publicKey, Buffer.from(privateKey, 'base64url'));
  }

  /** Null if it was encrypted with another key, which means that the database came from another installation. */
  #open({ public_key, sealed }: { public_key: string; sealed: Uint8Array }): PushKeyPair | null {
    try {
      const opened = unseal(this.#sealKey, public_key, sealed);
      return { publicKey: public_key, privateKey: opened.toString('base64url') };
    } catch {
      return null;
    }
  }
}

/** Generates a P-256 key pair. */
export function newPair(): PushKeyPair {
  const pair = createECDH('prime256v1');
  const publicKey = pair.generateKeys('base64url', 'uncompressed');
  // Leading zeros belong to the key, but `getPrivateKey` omits them.
  const bytes = pair.getPrivateKey();
  const privateKey = Buffer.concat([Buffer.alloc(PRIVATE_BYTES - bytes.length), bytes]).toString('base64url');
  return { publicKey, privateKey };
}
