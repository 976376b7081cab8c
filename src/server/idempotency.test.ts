import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { limits } from '../base/limits.ts';
import type { FirstAttempt, StoredAnswer } from '../core/idempotency.ts';
import { AccountsFixture } from '../testing/accounts.ts';
import { openFakeHttp, ROOT_TOKEN, requesterWithToken } from '../testing/http.ts';

const ada = {
  user_id: 'usr_ada',
  username: 'ada',
  role: 'user',
  token_id: 'tok_1',
  grant: null,
  ip: null,
} as const;
const request = Buffer.from('request one');
const another = Buffer.from('request two');
const answer: StoredAnswer = {
  status: 201,
  location: '/api/tokens/tok_9',
  body: { token: 'svc_secret-token' },
};

let fixture: AccountsFixture;
beforeEach(async () => {
  fixture = await AccountsFixture.open();
});
afterEach(() => fixture.close());

async function first(
  hash = request,
  key = 'k',
  caller = { ...ada, user_id: 'usr_ada' },
): Promise<FirstAttempt> {
  const begun = await fixture.idempotency.begin(caller, key, hash);
  if ('stored' in begun) throw new Error('was stored');
  return begun.first;
}

describe('idempotency', () => {
  it('replays the first response, even after a restart', async () => {
    await (await first()).keep(answer);
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
    fixture.restart();
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
  });

  it('replays a response without a body', async () => {
    await (await first()).keep({ status: 204, location: null });
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({
      stored: { status: 204, location: null },
    });
  });

  it('rejects a different request with the same key, before and after the response', async () => {
    const attempt = await first();
    const clash = () => fixture.idempotency.begin(ada, 'k', another);
    await expect(clash()).rejects.toThrow('idempotency key reused with a different request');
    await attempt.keep(answer);
    await expect(clash()).rejects.toThrow('idempotency key reused with a different request');
  });

  it('makes a repeated request wait for the first one, and returns its response to all', async () => {
    const attempt = await first();
    let waited = 0;
    const others = Array.from({ length: 20 }, async () => {
      const begun = await fixture.idempotency.begin(ada, 'k', request);
      waited += 1;
      return begun;
    });
    await fixture.store.read(() => null);
    expect(waited).toBe(0);
    await attempt.keep(answer);
    expect(await Promise.all(others)).toEqual(others.map(() => ({ stored: answer })));
  });

  it('lets one waiting request run if the first one failed', async () => {
    const attempt = await first();
    const others = [1, 2, 3].map(() => fixture.idempotency.begin(ada, 'k', request));
    await attempt.release();
    const second = await Promise.race(others);
    if ('stored' in second) throw new Error('nothing was stored');
    await second.first.keep(answer);
    const all = await Promise.all(others);
    expect(all.filter((begun) => 'stored' in begun)).toHaveLength(2);
  });

  it('frees the key of a failed request for any other request', async () => {
    await (await first()).release();
    await (await first(another)).keep(answer);
  });

  it('keeps the key of a failed request that has changed something', async () => {
    const attempt = await first();
    fixture.idempotency.reserve(ada, 'k');
    await attempt.release();
    // Also if the repeated request fails before it reserves the key.
    await (await first()).release();
    await expect(fixture.idempotency.begin(ada, 'k', another)).rejects.toThrow('idempotency key reused');
    await (await first()).keep(answer);
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
  });

  it('does not affect another request with its key when it ends a second time', async () => {
    const ended = await first();
    await ended.release();
    const running = await first(another);
    await ended.release();
    await expect(fixture.idempotency.begin(ada, 'k', request)).rejects.toThrow('idempotency key reused');
    const waiting = fixture.idempotency.begin(ada, 'k', another);
    await running.keep(answer);
    expect(await waiting).toEqual({ stored: answer });
  });

  it('keeps a response that was stored with its operation, although the request failed afterwards', async () => {
    const attempt = await first();
    await fixture.store.write((tx) => fixture.idempotency.storeWith(tx, ada, 'k', answer));
    await attempt.release();
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
  });

  it('repeats a request that was interrupted, and still rejects a different one', async () => {
    await first();
    fixture.restart();
    await expect(fixture.idempotency.begin(ada, 'k', another)).rejects.toThrow('idempotency key reused');
    await (await first()).keep(answer);
  });

  it('keeps the key of a request whose response cannot be stored', async () => {
    const calls: string[] = [];
    const keep = () => {
      calls.push('keep');
      return Promise.reject(new Error('the disk is full'));
    };
    const release = async () => void calls.push('release');
    const created_at = '2026-01-02T03:04:05.678Z';
    const createUser = () => ({
      location: '/api/admin/users/usr_1',
      body: { id: 'usr_1', username: 'bob', role: 'user' as const, created_at },
    });
    const server = await openFakeHttp(
      { createUser },
      { idempotency: { begin: async () => ({ first: { keep, release } }) } },
    );
    onTestFinished(() => server.drain());
    const send = requesterWithToken(() => server, ROOT_TOKEN);
    const body = { username: 'bob', password: 'x' };
    expect((await send('POST', '/api/admin/users', body, { key: 'k' })).status).toBe(500);
    expect(calls).toEqual(['keep']);
  });

  it('keeps the keys of users apart', async () => {
    await (await first()).keep(answer);
    await (await first(another, 'k', { ...ada, user_id: 'usr_bob' })).release();
  });

  it('forgets a key after a day', async () => {
    await (await first()).keep(answer);
    fixture.clock.advance(limits.idempotency_keep_ms - 1);
    expect(await fixture.idempotency.sweep()).toBe(0);
    expect(await fixture.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
    fixture.clock.advance(1);
    await (await first(another)).release();
    await (await first(another)).keep(answer);
    fixture.clock.advance(limits.idempotency_keep_ms);
    expect(await fixture.idempotency.sweep()).toBe(1);
  });

  it('stores neither secrets of the response nor a guessable hash of the request', async () => {
    await (await first()).keep(answer);
    const row = await fixture.store.read((r) => r.get(r.sql.selectFrom('idempotency').selectAll()));
    expect(row!.body).not.toContain('secret-token');
    expect(Buffer.from(JSON.parse(row!.body!), 'base64').toString('latin1')).not.toContain('secret-token');
    expect(Buffer.from(row!.request_hash).equals(request)).toBe(false);
  });

  it('rejects a sealed response that was moved to another key', async () => {
    await (await first(request, 'k1')).keep(answer);
    await (await first(request, 'k2')).keep({ ...answer, body: { token: 'other' } });
    await fixture.store.write(async (tx) => {
      const row = (await tx.get(tx.sql.selectFrom('idempotency').select('body').where('key', '=', 'k1')))!;
      await tx.run(tx.sql.updateTable('idempotency').set({ body: row.body }).where('key', '=', 'k2'));
    });
    await expect(fixture.idempotency.begin(ada, 'k2', request)).rejects.toThrow();
    expect(await fixture.idempotency.begin(ada, 'k1', request)).toEqual({ stored: answer });
  });
});
