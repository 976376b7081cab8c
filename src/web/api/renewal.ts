/**
 * Keeps the session alive while the page is in use: one tab renews the token for all tabs before half of its lifetime is
 * over. The absolute end that the server sets does not move; the user is asked for the password before it.
 */
import { client } from './client.ts';
import { endsSession } from './ends-session.ts';
import { renewing } from './renewing.ts';
import { type Session, session } from './session.ts';

/** Used if the start of the session is unknown. */
const HALF_UNKNOWN_MS = 6 * 3_600_000;
const PROMPT_BEFORE_END_MS = 10 * 60_000;
/** How long the lock is kept after a renewal: other tabs see the stored token only after a while. */
const SPREAD_MS = 2000;

/** Whether a new token should be fetched now. */
export function isDue({ since, expires_at, last }: Session, now_ms: number): boolean {
  if (last) return false;
  return expires_at - now_ms < (since === undefined ? HALF_UNKNOWN_MS : (expires_at - since) / 2);
}

/** Whether to ask for the password: the end is near, and a renewal would not move it. */
export function isEnding({ expires_at, last }: Session, now_ms: number): boolean {
  return last === true && expires_at - now_ms < PROMPT_BEFORE_END_MS;
}

export async function renewIfDue(): Promise<void> {
  const before = session.get();
  if (!before || !isDue(before, Date.now())) return;
  await renewing(async () => {
    // Another tab may have renewed it while this one waited for the lock.
    const now = session.reload();
    if (!now || !isDue(now, Date.now())) return;
    try {
      session.renew(await client().call('refreshToken'));
      await new Promise((spread) => setTimeout(spread, SPREAD_MS));
    } catch (error) {
      if (endsSession(error)) session.end(now.token);
      // Other errors are temporary, or a later request will report them.
    }
  });
}
