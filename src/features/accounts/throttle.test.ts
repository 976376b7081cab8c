import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Problem } from '../../core/problem.ts';
import { AccountsFixture, PASSWORD } from '../../testing/accounts.ts';
import { sqliteTest } from '../../testing/test-store.ts';
import { limits } from './limits.ts';

let fixture: AccountsFixture;
beforeEach(async () => {
  fixture = await AccountsFixture.open();
  const { caller } = await fixture.joinRoot('10.1.1.1');
  await fixture.accounts.create(caller, { username: 'ada', password: PASSWORD, role: 'user' });
});
afterEach(() => fixture.close());

/** Returns `ok`, `wrong`, or the seconds to wait. */
async function attempt(username: string, password: string, ip: string): Promise<string | number> {
  try {
    await fixture.accounts.login(username, password, { ip, user_agent: null });
    return 'ok';
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.kind === 'rate_limited') return error.retry_after_s!;
    return error.message === 'invalid username or password' ? 'wrong' : error.message;
  }
}

async function failureCounts(): Promise<number[]> {
  const rows = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('login_throttle').select('failures').where('failures', '>', 0)),
  );
  return rows.map(({ failures }) => failures);
}

async function times(n: number, what: () => Promise<string | number>): Promise<(string | number)[]> {
  const answers = [];
  for (let i = 0; i < n; i++) answers.push(await what());
  return answers;
}

describe('throttling of sign-ins', () => {
  it('allows five failures, then delays that user at that address, even with the right password', async () => {
    const bad = () => attempt('ada', 'wrong password', '10.0.0.1');
    expect(await times(7, bad)).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'wrong', 30, 30]);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe(30);
    fixture.clock.advance(29_001);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe(1);
    fixture.clock.advance(999);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe('ok');
  });

  it('doubles the delay at every further failure, up to 15 minutes', async () => {
    const bad = () => attempt('ada', 'wrong password', '10.0.0.1');
    await times(5, bad);
    const waits = [];
    for (let i = 0; i < 8; i++) {
      const wait = (await bad()) as number;
      waits.push(wait);
      fixture.clock.advance(wait * 1000);
      expect(await bad()).toBe('wrong');
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900]);
    fixture.clock.advance(900_000);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe('ok');
  });

  it('forgets failures after 15 minutes without one', async () => {
    const bad = () => attempt('ada', 'wrong password', '10.0.0.1');
    for (let i = 0; i < 3; i++) {
      expect(await times(4, bad)).toEqual(['wrong', 'wrong', 'wrong', 'wrong']);
      fixture.clock.advance(limits.login_window_ms);
    }
    await fixture.accounts.sweep();
    expect(await failureCounts()).toEqual([]);
  });

  it.each([
    ['of a block', 8],
    ['of a window', 3],
  ])('forgets the failures %s that were counted while the clock was ahead', async (_, failures) => {
    const ahead = 24 * 60 * 60 * 1000;
    const bad = () => attempt('ada', 'wrong password', '10.0.0.1');
    fixture.clock.advance(ahead);
    await times(failures, bad);
    fixture.clock.advance(-ahead);
    expect(await times(6, bad)).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'wrong', 30]);
    fixture.clock.advance(ahead);
    await times(failures, () => attempt('eve', 'wrong password', '10.0.0.2'));
    fixture.clock.advance(-ahead);
    await fixture.accounts.sweep();
    expect(await failureCounts()).toEqual([5, 5, 5]);
  });

  it('forgets the failures of an address that were counted while the clock was ahead', async () => {
    const ahead = 2 * limits.login_ip_window_ms;
    fixture.clock.advance(ahead);
    for (let i = 0; i < 21; i++) await attempt(`nobody-${i}`, 'wrong password', '10.0.0.1');
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe(60);
    fixture.clock.advance(-ahead);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe('ok');
  });

  it('survives a restart', async () => {
    await times(5, () => attempt('ada', 'wrong password', '10.0.0.1'));
    fixture.restart();
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe(30);
  });

  it('counts failures of all users at one address, twenty per minute', async () => {
    const answers = [];
    for (let i = 0; i < 22; i++) answers.push(await attempt(`nobody-${i}`, 'wrong password', '10.0.0.1'));
    expect(answers.slice(0, 20)).toEqual(Array(20).fill('wrong'));
    expect(answers.slice(20)).toEqual([60, 60]);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe(60);
    expect(await attempt('ada', PASSWORD, '10.0.0.2')).toBe('ok');
    fixture.clock.advance(60_000);
    expect(await attempt('ada', PASSWORD, '10.0.0.1')).toBe('ok');
  });

  it('does not block a user by the failures of others at an address where they signed in', async () => {
    expect(await attempt('ada', PASSWORD, '127.0.0.1')).toBe('ok');
    const caller = (await fixture.login('ada', PASSWORD, '127.0.0.1')).caller;
    for (let i = 0; i < 30; i++) await attempt(`nobody-${i}`, 'wrong password', `127.0.0.${i}`);
    expect(await attempt('ada', PASSWORD, '127.0.0.1')).toBe('ok');
    expect(await attempt('root', PASSWORD, '127.0.0.1')).toBe(60);
    // Even signed out, and at the other loopback address.
    await fixture.store.write((tx) => fixture.tokens.endAll(tx, caller.user_id));
    expect(await attempt('ada', PASSWORD, '::1')).toBe('ok');
    // Failures with the user's own name still count.
    const bad = () => attempt('ada', 'wrong password', '127.0.0.1');
    expect(await times(6, bad)).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'wrong', 30]);
  });

  it('forgets after a month where a user signed in', async () => {
    const flood = async () => {
      for (let i = 0; i < 21; i++) await attempt(`nobody-${i}`, 'wrong password', '127.0.0.1');
    };
    const { caller } = await fixture.login('ada', PASSWORD, '127.0.0.1');
    await fixture.tokens.logout(caller);
    fixture.clock.advance(limits.login_familiar_ms - 1);
    await fixture.accounts.sweep();
    await flood();
    await fixture.tokens.logout((await fixture.login('ada', PASSWORD, '127.0.0.1')).caller);
    fixture.clock.advance(limits.login_familiar_ms);
    await fixture.accounts.sweep();
    await flood();
    expect(await attempt('ada', PASSWORD, '127.0.0.1')).toBe(60);
  });

  it('limits the rate of attempts at an address, and that of each user who signed in there', async () => {
    expect(await attempt('ada', PASSWORD, '127.0.0.1')).toBe('ok');
    fixture.rate = { per_second: 0.001, burst: 3 };
    fixture.restart();
    const rates = await times(4, () => attempt('nobody', 'wrong password', '127.0.0.1'));
    expect(rates).toEqual(['wrong', 'wrong', 'wrong', 1000]);
    expect(await times(4, () => attempt('ada', PASSWORD, '127.0.0.1'))).toEqual(['ok', 'ok', 'ok', 1000]);
  });

  it('counts all loopback addresses as one', async () => {
    const answers = [];
    for (let i = 0; i < 22; i++) answers.push(await attempt(`nobody-${i}`, 'wrong', `127.${i}.0.1`));
    expect(answers.slice(20)).toEqual([60, 60]);
    expect(await attempt('nobody', 'wrong', '::1')).toBe(60);
  });

  it('does not count successes', async () => {
    expect(await times(30, () => attempt('ada', PASSWORD, '10.0.0.1'))).toEqual(Array(30).fill('ok'));
  });

  it('counts concurrent attempts', async () => {
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => attempt('ada', 'wrong password', '10.0.0.1')),
    );
    expect(answers.filter((answer) => answer === 'wrong')).toHaveLength(5);
    expect(answers.filter((answer) => answer === 30)).toHaveLength(25);
  });

  it('limits how many attempts of one address wait', async () => {
    const answers = await Promise.all(
      Array.from({ length: limits.logins_waiting_per_ip + 50 }, () =>
        attempt('ada', 'wrong password', '10.0.0.1'),
      ),
    );
    expect(answers.filter((answer) => answer === 1)).toHaveLength(50);
  });

  sqliteTest(
    'slows an attack from fifty addresses, while the owner can sign in from known and new addresses',
    async () => {
      expect(await attempt('ada', PASSWORD, '10.0.0.200')).toBe('ok');
      let checked_count = 0;
      for (let round = 0; round < 40; round++) {
        for (let host = 1; host <= 50; host++)
          if ((await attempt('ada', 'wrong password', `10.0.0.${host}`)) === 'wrong') checked_count += 1;
      }
      expect(checked_count).toBeLessThanOrEqual(60);
      expect(checked_count).toBeGreaterThanOrEqual(50);
      expect(await attempt('ada', PASSWORD, '10.0.0.200')).toBe('ok');
      expect(await attempt('ada', PASSWORD, '10.0.0.201')).toBe('ok');
      expect(await attempt('root', PASSWORD, '10.1.1.1')).toBe('ok');
    },
  );

  it('stops trusting new addresses after a hundred failures, but not signed-in ones', async () => {
    expect(await attempt('ada', PASSWORD, '10.0.3.1')).toBe('ok');
    for (let host = 0; host < limits.login_failures_per_user_max; host++)
      expect(await attempt('ada', 'wrong password', `10.0.4.${host}`)).toBe('wrong');
    expect(await attempt('ada', PASSWORD, '10.0.5.1')).toBe(900);
    expect(await attempt('ada', PASSWORD, '10.0.3.1')).toBe('ok');
    fixture.clock.advance(900_000);
    expect(await attempt('ada', PASSWORD, '10.0.5.1')).toBe('ok');
  });

  it('treats unknown users like known ones', async () => {
    const known = await times(7, () => attempt('ada', 'wrong password', '10.0.0.1'));
    const unknown = await times(7, () => attempt('eve', 'wrong password', '10.0.0.2'));
    expect(unknown).toEqual(known);
  });

  it('audits every checked failure, and the start of a block', async () => {
    await times(7, () => attempt('ada', 'wrong password', '10.0.0.1'));
    await attempt('not a name: hunter2', 'wrong password', '10.0.0.2');
    const failed = await fixture.audit.list({ event: 'user_login_failed' }, {});
    expect(failed.items).toHaveLength(6);
    expect(failed.items[0]).toMatchObject({ user_id: null, ip: '10.0.0.2', level: 'warn', details: {} });
    expect(failed.items[1]).toMatchObject({ ip: '10.0.0.1', details: { username: 'ada' } });
    expect(failed.items[1]!.user_id).toMatch(/^usr_/);
    expect((await fixture.audit.list({ event: 'user_login_throttled' }, {})).items).toHaveLength(1);
  });
});
