/**
 * The tokens of the internal gRPC listeners: HS256, valid for one minute and one call. The key comes from the
 * configuration, never from a header. A verifier reports the reason for a rejection only to its own log.
 */
import { type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { newSecret } from '../../base/ids.ts';
import { limits as sharedLimits } from '../../base/limits.ts';
import { limits } from '../limits.ts';

/** The settings that both ends of the link must share. */
export interface TokenSettings {
  shared_secret: string;
  issuer: string;
  audience: string;
}

/** A plane's token for the link, or an actor's token for the plane; one is never accepted as the other. */
const types = { link: 'svc-internal+jwt', actor: 'svc-actor+jwt' } as const;
type TokenKind = keyof typeof types;
const ALGORITHM = 'HS256';

/**
 * `subject`: the id of a plane or an actor. It is empty for an unnamed caller, which `claims.session_id` may identify.
 */
export function mintToken(
  settings: TokenSettings,
  subject: string,
  clock: Clock,
  { kind = 'link', claims = {} }: { kind?: TokenKind; claims?: { session_id?: string } } = {},
): Promise<string> {
  const now_s = Math.floor(clock.now() / 1000);
  return new SignJWT(claims)
    .setProtectedHeader({ alg: ALGORITHM, typ: types[kind] })
    .setIssuer(settings.issuer)
    .setAudience(settings.audience)
    .setSubject(subject)
    .setIssuedAt(now_s)
    .setNotBefore(now_s)
    .setExpirationTime(now_s + limits.link_token_s)
    .setJti(newSecret(16))
    .sign(keyOf(settings));
}

export class TokenVerifier {
  readonly #settings: () => TokenSettings | null;
  readonly #clock: Clock;
  readonly #typ: string;
  /** jti → the time at which it can be forgotten, oldest first. */
  readonly #seen = new Map<string, number>();

  /** `settings` is called for each token, because secrets change while the service runs. */
  constructor(options: { settings: () => TokenSettings | null; clock: Clock; kind?: TokenKind }) {
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#typ = types[options.kind ?? 'link'];
  }

  /** Returns the claims. Throws an Error with the reason, for the log only. Accepts each token once. */
  async verify(token: string): Promise<JWTPayload> {
    const settings = this.#settings();
    if (settings === null) throw new Error('no shared secret is known here');
    if (token.length > sharedLimits.link_token_chars_max) throw new Error('the token is too long');
    const { payload } = await jwtVerify(token, keyOf(settings), {
      algorithms: [ALGORITHM],
      typ: this.#typ,
      issuer: settings.issuer,
      audience: settings.audience,
      requiredClaims: ['sub', 'iat', 'nbf', 'exp', 'jti'],
      maxTokenAge: limits.link_token_s,
      clockTolerance: limits.link_token_leeway_s,
      currentDate: new Date(this.#clock.now()),
    });
    this.#once(payload.jti);
    return payload;
  }

  #once(jti: unknown): void {
    if (typeof jti !== 'string' || jti.length > 64)
      throw new Error('the id of the token is missing or too long');
    const now_ms = this.#clock.now();
    for (const [old, forget_ms] of this.#seen) {
      if (forget_ms > now_ms) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(jti)) throw new Error('the token was used before');
    if (this.#seen.size >= limits.link_tokens_seen_max)
      throw new Error('too many tokens in too short a time');
    // A token is valid for its lifetime, plus the leeway before and after.
    const valid_s = limits.link_token_s + 2 * limits.link_token_leeway_s;
    this.#seen.set(jti, now_ms + valid_s * 1000 + 1000);
  }
}

function keyOf({ shared_secret }: TokenSettings): Uint8Array {
  return new TextEncoder().encode(shared_secret);
}
