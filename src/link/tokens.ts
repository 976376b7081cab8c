/**
 * The tokens of the internal gRPC surface: HS256, one minute long, each good for one call. The key comes from
 * configuration and never from a header. A verifier says why it refuses only to its own side.
 */
import { type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Clock } from '../base/clock.ts';
import { newSecret } from '../base/ids.ts';
import { limits } from '../base/limits.ts';

/** What both sides of the link must agree on. */
export interface TokenSettings {
  shared_secret: string;
  issuer: string;
  audience: string;
}

/** A plane's on the link, an actor's on its way to the plane: the one is never taken for the other. */
const types = { link: 'svc-internal+jwt', actor: 'svc-actor+jwt' } as const;
type TokenKind = keyof typeof types;
const ALGORITHM = 'HS256';

/** `subject`: a plane's id, or an actor's (empty: nobody in particular, who calls from `claims.session_id` perhaps). */
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
  /** jti → when it can be forgotten, oldest first. */
  readonly #seen = new Map<string, number>();

  /** `settings` is asked at each call: secrets change under a running service. */
  constructor(options: { settings: () => TokenSettings | null; clock: Clock; kind?: TokenKind }) {
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#typ = types[options.kind ?? 'link'];
  }

  /** Throws an Error that says why the token is refused, for the log alone. A token is accepted once. Answers its claims. */
  async verify(token: string): Promise<JWTPayload> {
    const settings = this.#settings();
    if (settings === null) throw new Error('no shared secret is known here');
    if (token.length > limits.link_token_chars_max) throw new Error('the token is too long');
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
    if (typeof jti !== 'string' || jti.length > 64) throw new Error('the id of the token is no short text');
    const now_ms = this.#clock.now();
    for (const [old, forget_ms] of this.#seen) {
      if (forget_ms > now_ms) break;
      this.#seen.delete(old);
    }
    if (this.#seen.has(jti)) throw new Error('the token was used before');
    if (this.#seen.size >= limits.link_tokens_seen_max)
      throw new Error('too many tokens in too short a time');
    // From the first moment of its leeway to the last one.
    const life_s = limits.link_token_s + 2 * limits.link_token_leeway_s;
    this.#seen.set(jti, now_ms + life_s * 1000 + 1000);
  }
}

function keyOf({ shared_secret }: TokenSettings): Uint8Array {
  return new TextEncoder().encode(shared_secret);
}
