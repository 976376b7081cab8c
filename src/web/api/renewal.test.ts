import { describe, expect, it } from 'vitest';
import { isDue, isEnding } from './renewal.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const user = { id: 'usr_1', username: 'ana', role: 'user', created_at: '2026-01-01T00:00:00.000Z' } as const;
const session = { token: 't', user, since: 0, expires_at: 12 * HOUR };

describe('a session', () => {
  it('is renewed when less than half of its time is left', () => {
    expect([6 * HOUR, 6 * HOUR + 1, 13 * HOUR].map((now) => isDue(session, now))).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('whose beginning is not known is renewed in its last six hours', () => {
    const { since: _, ...old } = session;
    expect([6 * HOUR, 6 * HOUR + 1].map((now) => isDue(old, now))).toEqual([false, true]);
  });

  it('that renewing does not prolong is not renewed again: its person is asked, ten minutes before', () => {
    const last = { ...session, last: true };
    const asked = [12 * HOUR - 10 * MINUTE, 12 * HOUR - 9 * MINUTE, 12 * HOUR + 1];
    expect(asked.map((now) => isDue(last, now))).toEqual([false, false, false]);
    expect(asked.map((now) => isEnding(last, now))).toEqual([false, true, true]);
    expect(isEnding(session, 12 * HOUR)).toBe(false);
  });
});
