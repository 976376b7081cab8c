/** Invalid tokens of the internal listener, each with one defect, for tests of the verifier and of the servers that use it. */
import { createHmac, generateKeyPairSync } from 'node:crypto';
import { type JWTHeaderParameters, SignJWT, UnsecuredJWT } from 'jose';
import { limits as sharedLimits } from '../base/limits.ts';
import { limits } from '../link/limits.ts';
import type { TokenSettings } from '../link/trust/tokens.ts';

export type Forged = [name: string, make: () => Promise<string> | string];

export class TokenForge {
  readonly #key: Uint8Array;
  readonly #secret: string;
  readonly #header: { alg: string; typ: string };
  readonly #at: number;
  readonly #claims: Record<string, unknown>;
  #made = 0;

  /** `at`: the time at which the tokens are issued, in Unix seconds. */
  constructor(settings: TokenSettings, at: number, { typ = 'svc-internal+jwt', sub = 'pln_test' } = {}) {
    this.#secret = settings.shared_secret;
    this.#key = new TextEncoder().encode(settings.shared_secret);
    this.#header = { alg: 'HS256', typ };
    this.#at = at;
    const times = { iat: at, nbf: at, exp: at + limits.link_token_s };
    this.#claims = { iss: settings.issuer, aud: settings.audience, sub, ...times };
  }

  /** A valid token except for the changes. A claim that is set to undefined is omitted. */
  token(changed: Record<string, unknown> = {}, header: Partial<JWTHeaderParameters> = {}): Promise<string> {
    return new SignJWT({ ...this.#fresh(), ...changed })
      .setProtectedHeader({ ...this.#header, ...header })
      .sign(this.#key);
  }

  /** A token with a custom header, signed by default with the right secret. */
  hmac(header: object, secret = this.#secret): string {
    const signed = `${encoded({ ...this.#header, ...header })}.${encoded(this.#fresh())}`;
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  }

  /** Tokens that must all be rejected. */
  all(): Forged[] {
    const { typ } = this.#header;
    const at = this.#at;
    const lifetime_s = limits.link_token_s;
    const leeway_s = limits.link_token_leeway_s;
    const own_secret = 'a secret of the sender with 32 bytes';
    const fromHeader: [string, object][] = [
      ['a path as kid', { kid: '../../../../dev/null' }],
      ['an injection as kid', { kid: "x' UNION SELECT 'key" }],
      ['a key of the sender', { jwk: { kty: 'oct', k: Buffer.from(own_secret).toString('base64url') } }],
      ['the address of a key', { jku: 'https://evil.example/keys' }],
      ['a certificate of the sender', { x5u: 'https://evil.example/cert' }],
    ];
    return [
      ['another secret', () => this.hmac({}, `${this.#secret}!`)],
      ['another issuer', () => this.token({ iss: 'other' })],
      ['another audience', () => this.token({ aud: 'other' })],
      ['another type', () => this.token({}, { typ: 'JWT' })],
      ['no type', () => this.token({}, { typ: undefined as never })],
      ['expired', () => this.token({ iat: at - 100, nbf: at - 100, exp: at - leeway_s - 1 })],
      // With a margin, because time passes until the token is verified.
      ['not yet valid', () => this.token({ nbf: at + leeway_s + 30, exp: at + lifetime_s + 30 })],
      ['issued in the future', () => this.token({ iat: at + leeway_s + 30 })],
      [
        'issued too long ago, but not expired',
        () => this.token({ iat: at - lifetime_s - leeway_s - 1, nbf: at - 100, exp: at + 3600 }),
      ],
      ...['iss', 'aud', 'sub', 'iat', 'nbf', 'exp', 'jti'].map(
        (claim): Forged => [`no ${claim}`, () => this.token({ [claim]: undefined })],
      ),
      ['an id that is not a string', () => this.token({ jti: { $ne: 1 } })],
      ['an id that is too long', () => this.token({ jti: 'x'.repeat(65) })],
      ['HS512 with the secret', () => this.token({}, { alg: 'HS512' })],
      ['an unknown critical header', () => this.hmac({ crit: ['new'], new: 1 })],
      ['alg none', () => new UnsecuredJWT(this.#fresh()).encode()],
      ['alg none with the right type', () => this.#unsigned({ alg: 'none', typ })],
      ['alg nOnE', () => this.#unsigned({ alg: 'nOnE', typ })],
      ['no signature', async () => `${(await this.token()).split('.').slice(0, 2).join('.')}.`],
      ['other claims under the signature', async () => this.#swapped(await this.token())],
      ['RS256 with a key of the sender', () => this.#rsa()],
      ['RS256 in the header, the secret as key', () => this.hmac({ alg: 'RS256' })],
      ...fromHeader.flatMap(([name, header]): Forged[] => [
        [`${name}, signed with it`, () => this.hmac(header, own_secret)],
        [`${name}, signed with an empty key`, () => this.hmac(header, '')],
      ]),
      ['malformed', () => 'a.b.c'],
      ['an empty token', () => ''],
      ['longer than a token may be', () => 'x'.repeat(sharedLimits.link_token_chars_max + 1)],
    ];
  }

  /** Claims with a new id, because a token is valid for one call only. */
  #fresh(): Record<string, unknown> {
    return { ...this.#claims, jti: `forged-${this.#at}-${++this.#made}` };
  }

  #unsigned(header: object): string {
    return `${encoded(header)}.${encoded(this.#fresh())}.`;
  }

  #swapped(good: string): string {
    const [header, , signature] = good.split('.');
    return `${header}.${encoded({ ...this.#fresh(), sub: 'pln_evil' })}.${signature}`;
  }

  #rsa(): Promise<string> {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    return new SignJWT(this.#fresh())
      .setProtectedHeader({ alg: 'RS256', typ: this.#header.typ })
      .sign(privateKey);
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
