import { describe, expect, it } from 'vitest';
import { isDue, isEnding } from './renewal.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const user = { id: 'usr_1', username: 'ana', role: 'user', created_at: '2026-01-01T00:00:00.000Z' } as const;
const session = { token: 't', user, since: 0, expires_at: 12 * HOUR };

describe('renewing a session', () => {
  it('is due when less than half of its lifetime is left', () => {
    expect([6 * HOUR, 6 * HOUR + 1, 13 * HOUR].map((now) => isDue(session, now))).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('is due in its last six hours if its start is unknown', () => {
    const { since: _, ...old } = session;
    expect([6 * HOUR, 6 * HOUR + 1].map((now) => isDue(old, now))).toEqual([false, true]);
  });

  it('is no longer due once it cannot extend the session; the user is asked ten minutes before the end', () => {
    const last = { ...session, last: true };
    const times = [12 * HOUR - 10 * MINUTE, 12 * HOUR - 9 * MINUTE, 12 * HOUR + 1];
    expect(times.map((now) => isDue(last, now))).toEqual([false, false, false]);
    expect(times.map((now) => isEnding(last, now))).toEqual([false, true, true]);
    expect(isEnding(session, 12 * HOUR)).toBe(false);
  });
});
