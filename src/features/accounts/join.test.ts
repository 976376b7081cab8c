import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AccountsFixture, BASE_URL, outcome, PASSWORD } from '../../testing/accounts.ts';
import type { JoinRequest } from './join.ts';
import { limits } from './limits.ts';

const here = { ip: '127.0.0.1', user_agent: null };
let fixture: AccountsFixture;
beforeEach(async () => {
  fixture = await AccountsFixture.open();
});
afterEach(() => fixture.close());

async function challenge(): Promise<JoinRequest> {
  const { token, pin } = (await fixture.join.ensureChallenge(BASE_URL))!;
  return { token, pin, username: 'root', password: PASSWORD };
}
const other = (pin: string) => (pin === '00000000' ? '00000001' : '00000000');

describe('join', () => {
  it('creates the first root, signs it in, and deletes join.json', async () => {
    const request = await challenge();
    const stored = JSON.parse(await readFile(fixture.joinFile, 'utf8'));
    expect(stored).toMatchObject({ token: request.token, pin: request.pin });
    expect(stored.url).toBe(`${BASE_URL}/join#t=${request.token}`);
    expect((await stat(fixture.joinFile)).mode & 0o777).toBe(0o600);
    expect(request.pin).toMatch(/^\d{8}$/);

    const signedIn = await fixture.join.join(request, here);
    expect(signedIn.user).toMatchObject({ username: 'root', role: 'root' });
    expect(signedIn.expires_in).toBe(12 * 60 * 60);
    expect((await fixture.tokens.authenticate(signedIn.token, here.ip)).role).toBe('root');
    await expect(stat(fixture.joinFile)).rejects.toThrow('ENOENT');
    expect(await fixture.audited()).toEqual(['join_challenge_created', 'user_created', 'user_login']);
  });

  it('stores neither the token nor the PIN in the database', async () => {
    const { token, pin } = await challenge();
    const row = await fixture.store.read((r) => r.get(r.sql.selectFrom('join_challenges').selectAll()));
    const stored = Buffer.concat([Buffer.from(row!.token_hash), Buffer.from(row!.pin_hash)]).toString(
      'latin1',
    );
    expect(stored).not.toContain(token);
    expect(stored).not.toContain(pin);
  });

  it('rejects every request once root exists, before any other check', async () => {
    await fixture.joinRoot();
    const malformed = { token: '', pin: '', username: '', password: '' };
    expect(await outcome(fixture.join.join(malformed, here))).toBe('root already initialized');
    expect(await outcome(fixture.join.requestChallenge(BASE_URL, null))).toBe('root already initialized');
    expect(await fixture.join.ensureChallenge(BASE_URL)).toBeNull();
  });

  it('checks the token, its expiry, the PIN and the password in this order, and only a wrong PIN counts as a try', async () => {
    const request = await challenge();
    for (let i = 0; i < 10; i++) {
      expect(await outcome(fixture.join.join({ ...request, token: 'x', pin: 'x' }, here))).toBe(
        'invalid join token',
      );
      expect(await outcome(fixture.join.join({ ...request, password: 'short' }, here))).toBe(
        'password must be at least 12 characters',
      );
    }
    expect(
      await outcome(fixture.join.join({ ...request, pin: other(request.pin), password: 'short' }, here)),
    ).toBe('invalid pin');
    expect(await outcome(fixture.join.join({ ...request, username: 'No Good' }, here))).toMatch(
      /^username must be/,
    );
    fixture.clock.advance(limits.join_challenge_ms);
    expect(await outcome(fixture.join.join({ ...request, pin: other(request.pin) }, here))).toBe(
      'join token expired',
    );
    expect(await outcome(fixture.join.join({ ...request, token: 'x' }, here))).toBe('invalid join token');
  });

  it('checks a PIN without using the challenge, and counts wrong ones with those of joins', async () => {
    const request = await challenge();
    const wrong = { ...request, pin: other(request.pin) };
    for (let i = 0; i < 10; i++) await fixture.join.checkPin(request, null);
    for (const tries_left of [4, 3]) {
      await expect(fixture.join.checkPin(wrong, '192.0.2.1')).rejects.toMatchObject({
        ...{ code: 'invalid_pin', message: 'invalid pin', tries_left },
      });
    }
    await expect(fixture.join.join(wrong, here)).rejects.toMatchObject({ tries_left: 2 });
    expect(await outcome(fixture.join.checkPin({ ...request, token: 'x' }, null))).toBe('invalid join token');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => outcome(fixture.join.checkPin(wrong, null))),
    );
    expect(answers.filter((answer) => answer === 'invalid pin')).toHaveLength(2);
    expect(await outcome(fixture.join.checkPin(request, null))).toBe('join token expired');
    expect(await outcome(fixture.join.join(request, here))).toBe('join token expired');
    expect((await fixture.audited()).filter((event) => event === 'join_failed')).toHaveLength(5);
  });

  it('checks no PIN once there is a root user', async () => {
    const request = await challenge();
    await fixture.join.join(request, here);
    expect(await outcome(fixture.join.checkPin(request, null))).toBe('root already initialized');
  });

  it('invalidates the challenge at the fifth wrong PIN, even with concurrent requests', async () => {
    const request = await challenge();
    const guesses = Array.from({ length: 40 }, () =>
      outcome(fixture.join.join({ ...request, pin: other(request.pin) }, here)),
    );
    const answers = await Promise.all(guesses);
    expect(answers.filter((answer) => answer === 'invalid pin')).toHaveLength(5);
    expect(answers.filter((answer) => answer === 'join token expired')).toHaveLength(35);
    expect(await outcome(fixture.join.join(request, here))).toBe('join token expired');
    expect((await fixture.audited()).filter((event) => event === 'join_failed')).toHaveLength(5);
  });

  it('lets one of a hundred concurrent joins succeed, and rejects the others because root exists', async () => {
    const request = await challenge();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        outcome(fixture.join.join({ ...request, username: `root-${i}` }, here)),
      ),
    );
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'root already initialized')).toHaveLength(99);
    expect((await fixture.accounts.list({})).items).toHaveLength(1);
  });

  it('keeps a valid challenge, however often one is requested and from where', async () => {
    const first = await challenge();
    fixture.clock.advance(limits.join_challenge_ms - 1);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fixture.join.requestChallenge(BASE_URL, '127.0.0.1')),
    );
    const expires_at = JSON.parse(await readFile(fixture.joinFile, 'utf8')).expires_at;
    expect(answers).toEqual(answers.map(() => ({ file: fixture.joinFile, expires_at })));
    expect(await fixture.audited()).toEqual(['join_challenge_created']);
    expect(await outcome(fixture.join.join(first, here))).toBe('ok');
  });

  it('replaces a challenge that expired, ran out of tries, or lost its file', async () => {
    const ended: (() => Promise<void>)[] = [
      async () => fixture.clock.advance(limits.join_challenge_ms),
      async () => {
        const { token, pin } = JSON.parse(await readFile(fixture.joinFile, 'utf8'));
        for (let i = 0; i < limits.join_pin_tries; i++)
          await outcome(
            fixture.join.join({ token, pin: other(pin), username: 'root', password: PASSWORD }, here),
          );
      },
      () => rm(fixture.joinFile),
    ];
    for (const end of ended) {
      const before = await challenge();
      await end();
      await fixture.join.requestChallenge(BASE_URL, null);
      const { token } = JSON.parse(await readFile(fixture.joinFile, 'utf8'));
      expect(token).not.toBe(before.token);
      expect(await outcome(fixture.join.join(before, here))).toBe('invalid join token');
    }
  });

  it('keeps a valid challenge across restarts, and replaces one that expired or lost its file', async () => {
    const first = (await fixture.join.ensureChallenge(BASE_URL))!;
    fixture.restart();
    expect(await fixture.join.ensureChallenge('http://127.0.0.1:9')).toEqual({
      ...first,
      url: `http://127.0.0.1:9/join#t=${first.token}`,
    });
    fixture.clock.advance(limits.join_challenge_ms - 30_000);
    const second = (await fixture.join.ensureChallenge(BASE_URL))!;
    expect(second.token).not.toBe(first.token);
    await writeFile(fixture.joinFile, '{"token": 1');
    const third = (await fixture.join.ensureChallenge(BASE_URL))!;
    expect(third.token).not.toBe(second.token);
  });
});
