/** Opaque ids with a prefix per kind of record, and random secrets. */
import { createHash, createHmac, randomBytes } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

export type IdPrefix =
  | 'agt'
  | 'ses'
  | 'usr'
  | 'tok'
  | 'pln'
  | 'req'
  | 'team'
  | 'run'
  | 'task'
  | 'conv'
  | 'trg'
  | 'rev'
  | 'eli'
  | 'prm'
  | 'psh'
  | 'pky'
  | 'pkl';

/** Returns a new opaque id: the prefix and 16 base-32 letters (80 random bits), for example `agt_…`. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${base32(randomBytes(10))}`;
}

/** Derives an id from its parts, so that the same caller gets the same id again for the same idempotency key. */
export function idFrom(prefix: IdPrefix, ...parts: string[]): string {
  return `${prefix}_${base32(createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 10))}`;
}

/** Like `idFrom`, but unpredictable for anyone without the key. */
export function idFromKeyed(prefix: IdPrefix, key: Uint8Array, ...parts: string[]): string {
  return `${prefix}_${base32(createHmac('sha256', key).update(JSON.stringify(parts)).digest().subarray(0, 10))}`;
}

/** Returns a secret of `bytes` random bytes, base64url. */
export function newSecret(bytes = 32): string {
  return randomBytes(bytes).toString('base64url');
}

function base32(bytes: Uint8Array): string {
  let bits = 0n;
  for (const byte of bytes) bits = (bits << 8n) | BigInt(byte);
  let text = '';
  for (let left = (bytes.length * 8) / 5; left > 0; left--) {
    text = ALPHABET[Number(bits & 31n)] + text;
    bits >>= 5n;
  }
  return text;
}
