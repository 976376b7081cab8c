/**
 * An authenticator and its browser in software: creates passkeys and signs with them according to WebAuthn, with any deviation
 * that a test requests.
 */
import { generateKeyPairSync, hash, type KeyObject, randomBytes, sign } from 'node:crypto';
import type { LoginResponse, RegistrationResponse } from '../features/passkeys/service.ts';

export type Algorithm = 'ES256' | 'EdDSA' | 'RS256' | 'ES512';

/** Deviations from a valid response. */
export interface Forgery {
  origin?: string;
  type?: string;
  challenge?: string;
  rp_id?: string;
  /** The authenticator's flags: 1 for user presence, 4 for user verification. */
  flags?: number;
  counter?: number;
  /** Additional fields of the browser's client data. */
  client?: Record<string, unknown>;
  user_handle?: string | null;
  /** Signs with a different key. */
  other_key?: true;
}

const PRESENT_AND_VERIFIED = 0b101;
const HAS_KEY = 0b0100_0000;

export class Authenticator {
  readonly id = randomBytes(16).toString('base64url');
  counter = 0;
  readonly #origin: string;
  readonly #algorithm: Algorithm;
  readonly #key: KeyObject;
  readonly #cose: Buffer;
  #user_handle: string | null = null;

  /** `claimed`: the algorithm number in its public key, if it differs from the real one. */
  constructor(origin: string, algorithm: Algorithm = 'ES256', claimed?: number) {
    this.#origin = origin;
    this.#algorithm = algorithm;
    const { key, cose } = newKey(algorithm, claimed);
    this.#key = key;
    this.#cose = cose;
  }

  /** Creates a passkey for the user in the options; returns the browser's response. */
  register(
    options: { challenge: string; rp: { id: string }; user: { id: string } },
    forged: Forgery = {},
  ): RegistrationResponse {
    this.#user_handle = options.user.id;
    const id = Buffer.from(this.id, 'base64url');
    const length = Buffer.from([id.length >> 8, id.length & 255]);
    const key = Buffer.concat([Buffer.alloc(16), length, id, this.#cose]);
    const data = Buffer.concat([this.#head(options.rp.id, HAS_KEY, forged), key]);
    const attestation = new Map<string, Cbor>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', data],
    ]);
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: this.#client('webauthn.create', options.challenge, forged).toString('base64url'),
        attestationObject: cbor(attestation).toString('base64url'),
        transports: ['internal'],
      },
    };
  }

  /** Signs in as the user of its passkey; returns the browser's response. */
  login(options: { challenge: string; rpId: string }, forged: Forgery = {}): LoginResponse {
    const client = this.#client('webauthn.get', options.challenge, forged);
    const data = this.#head(options.rpId, 0, forged);
    const signed = Buffer.concat([data, hash('sha256', client, 'buffer')]);
    const key = forged.other_key ? newKey(this.#algorithm).key : this.#key;
    const digest = { ES256: 'sha256', RS256: 'sha256', ES512: 'sha512', EdDSA: null }[this.#algorithm];
    return {
      ...this.#credential(),
      response: {
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: sign(digest, signed, key).toString('base64url'),
        userHandle: forged.user_handle === undefined ? this.#user_handle : forged.user_handle,
      },
    };
  }

  #credential() {
    return { id: this.id, rawId: this.id, type: 'public-key' };
  }

  #client(type: string, challenge: string, forged: Forgery): Buffer {
    const fields = { type, challenge, origin: this.#origin, crossOrigin: false };
    const { origin, type: other_type, challenge: other_challenge, client } = forged;
    return Buffer.from(
      JSON.stringify({
        ...fields,
        ...(origin !== undefined && { origin }),
        ...(other_type !== undefined && { type: other_type }),
        ...(other_challenge !== undefined && { challenge: other_challenge }),
        ...client,
      }),
    );
  }

  #head(rp_id: string, flags: number, forged: Forgery): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(forged.counter ?? this.counter);
    const rp_id_hash = hash('sha256', forged.rp_id ?? rp_id, 'buffer');
    return Buffer.concat([
      rp_id_hash,
      Buffer.from([flags | (forged.flags ?? PRESENT_AND_VERIFIED)]),
      counter,
    ]);
  }
}

function newKey(algorithm: Algorithm, claimed?: number): { key: KeyObject; cose: Buffer } {
  const { publicKey, privateKey } = keyPair(algorithm);
  const part = publicKey.export({ format: 'jwk' });
  const bytes = (name: 'x' | 'y' | 'n' | 'e') => Buffer.from(part[name]!, 'base64url');
  const cose: Record<Algorithm, () => [number, Cbor][]> = {
    ES256: () => [
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes('x')],
      [-3, bytes('y')],
    ],
    ES512: () => [
      [1, 2],
      [3, -36],
      [-1, 3],
      [-2, bytes('x')],
      [-3, bytes('y')],
    ],
    EdDSA: () => [
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, bytes('x')],
    ],
    RS256: () => [
      [1, 3],
      [3, -257],
      [-1, bytes('n')],
      [-2, bytes('e')],
    ],
  };
  const fields = new Map(cose[algorithm]());
  if (claimed !== undefined) fields.set(3, claimed);
  return { key: privateKey, cose: cbor(fields) };
}

function keyPair(algorithm: Algorithm) {
  switch (algorithm) {
    case 'EdDSA':
      return generateKeyPairSync('ed25519');
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    default:
      return generateKeyPairSync('ec', { namedCurve: algorithm === 'ES256' ? 'P-256' : 'P-521' });
  }
}

type Cbor = number | string | Uint8Array | Map<number | string, Cbor>;

function cbor(value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  return Buffer.concat([head(5, value.size), ...[...value].flat().map(cbor)]);
}

function head(major: number, size: number): Buffer {
  const kind = major << 5;
  if (size < 24) return Buffer.from([kind | size]);
  return size < 256 ? Buffer.from([kind | 24, size]) : Buffer.from([kind | 25, size >> 8, size & 255]);
}
