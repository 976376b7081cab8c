/**
 * The token of an agent's session consists of the session's id and a MAC with the plane's key. So no secret is stored, and a
 * session's token never changes. Each call checks whether the session is still live.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

const TOKEN = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.([A-Za-z0-9_-]{43})$/;

export class SessionTokens {
  readonly #key: Uint8Array;

  /** `key`: 32 bytes, see `secret-key.ts`. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  of(session_id: string): string {
    return `${session_id}.${this.#mac(session_id).toString('base64url')}`;
  }

  /** The session of a token; null if this plane did not create it. */
  sessionOf(token: string): string | null {
    const [, session_id, mac] = TOKEN.exec(token) ?? [];
    if (session_id === undefined || mac === undefined) return null;
    return timingSafeEqual(Buffer.from(mac, 'base64url'), this.#mac(session_id)) ? session_id : null;
  }

  #mac(session_id: string): Buffer {
    return createHmac('sha256', this.#key).update(`actor session:${session_id}`).digest();
  }
}
