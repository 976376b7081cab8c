import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limits } from '../base/limits.ts';
import type { FirstAttempt, StoredAnswer } from '../domain/idempotency.ts';
import { AccountsRoom } from '../testing/accounts.ts';

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

let room: AccountsRoom;
beforeEach(async () => {
  room = await AccountsRoom.open();
});
afterEach(() => room.close());

async function first(
  hash = request,
  key = 'k',
  caller = { ...ada, user_id: 'usr_ada' },
): Promise<FirstAttempt> {
  const begun = await room.idempotency.begin(caller, key, hash);
  if ('stored' in begun) throw new Error('was stored');
  return begun.first;
}

describe('idempotency', () => {
  it('gives the first answer again, after a restart too', async () => {
    await (await first()).keep(answer, { secret: true });
    expect(await room.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
    room.restart();
    expect(await room.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
  });

  it('keeps answers without a body as such', async () => {
    await (await first()).keep({ status: 204, location: null }, { secret: false });
    expect(await room.idempotency.begin(ada, 'k', request)).toEqual({
      stored: { status: 204, location: null },
    });
  });

  it('refuses another request with the same key, before and after the answer', async () => {
    const attempt = await first();
    const clash = () => room.idempotency.begin(ada, 'k', another);
    await expect(clash()).rejects.toThrow('idempotency key reused with a different request');
    await attempt.keep(answer, { secret: false });
    await expect(clash()).rejects.toThrow('idempotency key reused with a different request');
  });

  it('makes the same request wait for the first one, and answers all with its answer', async () => {
    const attempt = await first();
    let waited = 0;
    const others = Array.from({ length: 20 }, async () => {
      const begun = await room.idempotency.begin(ada, 'k', request);
      waited += 1;
      return begun;
    });
    await room.store.read(() => null);
    expect(waited).toBe(0);
    await attempt.keep(answer, { secret: false });
    expect(await Promise.all(others)).toEqual(others.map(() => ({ stored: answer })));
  });

  it('lets one of those who wait go first when the first one failed', async () => {
    const attempt = await first();
    const others = [1, 2, 3].map(() => room.idempotency.begin(ada, 'k', request));
    await attempt.release();
    const second = await Promise.race(others);
    if ('stored' in second) throw new Error('nothing was stored');
    await second.first.keep(answer, { secret: false });
    const all = await Promise.all(others);
    expect(all.filter((begun) => 'stored' in begun)).toHaveLength(2);
  });

  it('frees the key of a failed request for any other', async () => {
    await (await first()).release();
    await (await first(another)).keep(answer, { secret: false });
  });

  it('runs the same request again when the first one died on the way, and still refuses another', async () => {
    await first();
    room.restart();
    await expect(room.idempotency.begin(ada, 'k', another)).rejects.toThrow('idempotency key reused');
    await (await first()).keep(answer, { secret: false });
  });

  it('keeps the keys of users apart', async () => {
    await (await first()).keep(answer, { secret: false });
    await (await first(another, 'k', { ...ada, user_id: 'usr_bob' })).release();
  });

  it('forgets after a day', async () => {
    await (await first()).keep(answer, { secret: false });
    room.clock.advance(limits.idempotency_keep_ms - 1);
    expect(await room.idempotency.sweep()).toBe(0);
    expect(await room.idempotency.begin(ada, 'k', request)).toEqual({ stored: answer });
    room.clock.advance(1);
    await (await first(another)).release();
    await (await first(another)).keep(answer, { secret: false });
    room.clock.advance(limits.idempotency_keep_ms);
    expect(await room.idempotency.sweep()).toBe(1);
  });

  it('stores neither secrets of the answer nor a hash of the request that can be guessed from', async () => {
    await (await first()).keep(answer, { secret: true });
    const row = await room.store.read((r) => r.get(r.sql.selectFrom('idempotency').selectAll()));
    expect(row!.body).not.toContain('secret-token');
    expect(Buffer.from(JSON.parse(row!.body!), 'base64').toString('latin1')).not.toContain('secret-token');
    expect(Buffer.from(row!.request_hash).equals(request)).toBe(false);
  });

  it('refuses a sealed answer that was moved under another key', async () => {
    await (await first(request, 'k1')).keep(answer, { secret: true });
    await (await first(request, 'k2')).keep({ ...answer, body: { token: 'other' } }, { secret: true });
    await room.store.write((tx) => {
      const row = tx.get(tx.sql.selectFrom('idempotency').select('body').where('key', '=', 'k1'))!;
      tx.run(tx.sql.updateTable('idempotency').set({ body: row.body }).where('key', '=', 'k2'));
    });
    await expect(room.idempotency.begin(ada, 'k2', request)).rejects.toThrow();
    expect(await room.idempotency.begin(ada, 'k1', request)).toEqual({ stored: answer });
  });
});
