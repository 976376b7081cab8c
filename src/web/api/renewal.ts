/**
 * Who uses the page stays signed in: before half of the token's time is over it is changed for a new one, by one tab for
 * all. The end that the server has set in any case does not move; a person is asked for the password before it comes.
 */
import { client } from './client.ts';
import { endsSession } from './ends-session.ts';
import { renewing } from './renewing.ts';
import { type Session, session } from './session.ts';

/** Of a session whose beginning is not known. */
const HALF_UNKNOWN_MS = 6 * 3_600_000;
const ASK_BEFORE_MS = 10 * 60_000;
/** Browsers bring what one tab stores to the others in their own time; the lock is kept until then. */
const SPREAD_MS = 2000;

/** Whether a new token should be fetched now. */
export function isDue({ since, expires_at, last }: Session, now_ms: number): boolean {
  if (last) return false;
  return expires_at - now_ms < (since === undefined ? HALF_UNKNOWN_MS : (expires_at - since) / 2);
}

/** Whether it is time to ask for the password: the end is near, and nothing else moves it. */
export function isEnding({ expires_at, last }: Session, now_ms: number): boolean {
  return last === true && expires_at - now_ms < ASK_BEFORE_MS;
}

export async function renewIfDue(): Promise<void> {
  const before = session.get();
  if (!before || !isDue(before, Date.now())) return;
  await renewing(async () => {
    // Another tab may have done it while this one waited.
    const now = session.look();
    if (!now || !isDue(now, Date.now())) return;
    try {
      session.renew(await client().call('refreshToken'));
      await new Promise((spread) => setTimeout(spread, SPREAD_MS));
    } catch (error) {
      if (endsSession(error)) session.end(now.token);
      // Anything else passes, or a later request tells of it.
    }
  });
}
