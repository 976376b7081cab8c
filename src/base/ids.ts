import { createHash, randomBytes } from 'node:crypto';

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
  | 'prm'
  | 'psh'
  | 'pky'
  | 'pkl';

/** A new opaque id, for example `agt_` and 16 base-32 letters (80 random bits). */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${base32(randomBytes(10))}`;
}

/** The id that the same caller gets again for the same idempotency key. */
export function idFrom(prefix: IdPrefix, ...parts: string[]): string {
  return `${prefix}_${base32(createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 10))}`;
}

/** A secret of `bytes` random bytes, base64url. */
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
