import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Scope } from '../../core/grant.ts';
import { addAgent } from '../../store/testing.ts';
import { AccountsFixture, outcome, PASSWORD } from '../../testing/accounts.ts';
import { SOON } from '../../testing/features-fixture.ts';
import { addTeam, addUser, specOf } from '../../testing/team.ts';
import type { Caller } from '../accounts/rules.ts';
import { insertSubscription } from '../notifications/queries.ts';
import { limits } from './limits.ts';
import { saveUse } from './queries.ts';

let fixture: AccountsFixture;
let root: { caller: Caller; token: string };
beforeEach(async () => {
  fixture = await AccountsFixture.open();
  root = await fixture.joinRoot();
});
afterEach(() => fixture.close());

const isGood = (token: string) => outcome((async () => fixture.tokens.authenticate(token, '127.0.0.1'))());
const never = { expires_at: null };

describe('tokens', () => {
  it('identify their user, and are stored as SHA-256 only', async () => {
    expect(root.token).toMatch(/^svc_[A-Za-z0-9_-]{43}$/);
    expect(await fixture.tokens.authenticate(root.token, '10.0.0.9')).toEqual({
      user_id: root.caller.user_id,
      username: 'root',
      role: 'root',
      token_id: root.caller.token_id,
      grant: null,
      ip: '10.0.0.9',
    });
    const rows = await fixture.store.read((r) => r.all(r.sql.selectFrom('tokens').selectAll()));
    expect(JSON.stringify(rows)).not.toContain(root.token);
    expect(rows[0]!.hash).toHaveLength(32);
  });

  it('are in memory after their first use, until a commit revokes them', async () => {
    await fixture.tokens.authenticate(root.token, null);
    expect(fixture.tokens.authenticate(root.token, '127.0.0.1')).toEqual(root.caller);
    await fixture.tokens.logout(await fixture.tokens.authenticate(root.token, null));
    expect(await isGood(root.token)).toBe('invalid token');
  });

  it('are invalid if malformed or unknown', async () => {
    const unknown_tokens = [
      '',
      'x',
      `${root.token}x`,
      root.token.slice(1),
      root.token.toUpperCase(),
      `svc_${'a'.repeat(43)}`,
    ];
    for (const token of unknown_tokens) expect(await isGood(token)).toBe('invalid token');
  });

  it('expire after 12 hours without use, and use extends them', async () => {
    fixture.clock.advance(limits.token_idle_ms - 1);
    expect(await isGood(root.token)).toBe('ok');
    const lastUse = () =>
      fixture.store.read((reader) =>
        reader.get(reader.sql.selectFrom('tokens').select((eb) => eb.fn.max('last_used_at').as('at'))),
      );
    await expect.poll(lastUse).toEqual({ at: fixture.clock.now() });
    fixture.clock.advance(limits.token_idle_ms - 1);
    fixture.restart();
    expect(await isGood(root.token)).toBe('ok');
    fixture.clock.advance(limits.token_idle_ms);
    expect(await fixture.tokens.isLive(root.caller.token_id)).toBe(false);
    expect(await isGood(root.token)).toBe('invalid token');
  });

  it('expire 7 days after the sign-in, regardless of use and refresh', async () => {
    let { token } = root;
    for (let hours = 6; hours < 7 * 24; hours += 6) {
      fixture.clock.advance(6 * 60 * 60 * 1000);
      const caller = await fixture.tokens.authenticate(token, null);
      const fresh = await fixture.tokens.refresh(caller);
      token = fresh.token;
      expect(fresh.expires_in).toBe(Math.min(12, 7 * 24 - hours) * 60 * 60);
    }
    fixture.clock.advance(6 * 60 * 60 * 1000 - 1);
    expect(await isGood(token)).toBe('ok');
    fixture.clock.advance(1);
    expect(await isGood(token)).toBe('invalid token');
  });

  it('are deleted only after they expire', async () => {
    expect(await fixture.tokens.sweep()).toBe(0);
    fixture.clock.advance(limits.token_idle_ms);
    expect(await fixture.tokens.sweep()).toBe(1);
  });

  it('save their last use about once a minute', async () => {
    const used = async () =>
      (await fixture.store.read((r) => r.get(r.sql.selectFrom('tokens').select('last_used_at'))))!
        .last_used_at;
    const start = fixture.clock.now();
    for (let i = 0; i < 59; i++) {
      fixture.clock.advance(1_000);
      await fixture.tokens.authenticate(root.token, null);
    }
    await fixture.store.write(() => null);
    expect(await used()).toBe(start);
    fixture.clock.advance(1_000);
    await fixture.tokens.authenticate(root.token, null);
    await vi.waitFor(async () => expect(await used()).toBe(start + 60_000), SOON);
    fixture.clock.advance(5_000);
    await fixture.tokens.authenticate(root.token, null);
    await fixture.tokens.flush();
    expect(await used()).toBe(start + 65_000);
    // As by a write that began earlier and ends later.
    const earlier = { last_used_at: start + 64_000, idle_expires_at: start };
    await fixture.store.write(async (tx) => {
      const { id } = (await tx.get(tx.sql.selectFrom('tokens').select('id')))!;
      await saveUse(tx, id, earlier);
    });
    expect(await used()).toBe(start + 65_000);
  });

  it('leave the cache before the caller learns that they were revoked', async () => {
    for (let i = 0; i < 20; i++) {
      const { token, caller } = await fixture.login('root');
      const checks = Array.from({ length: 10 }, () => isGood(token));
      await fixture.tokens.logout(caller);
      expect(await isGood(token)).toBe('invalid token');
      expect(await fixture.tokens.isLive(caller.token_id)).toBe(false);
      for (const answer of await Promise.all(checks)) expect(['ok', 'invalid token']).toContain(answer);
      expect(await isGood(token)).toBe('invalid token');
    }
  });

  it('are not restored by a read that began before they were revoked', async () => {
    for (let i = 0; i < 20; i++) {
      const { token, caller } = await fixture.login('root');
      fixture.restart();
      const [, request] = await Promise.all([fixture.tokens.logout(caller), isGood(token), isGood(token)]);
      expect(['ok', 'invalid token']).toContain(request);
      expect(await isGood(token)).toBe('invalid token');
    }
  });

  it('are limited in number: the least recently used sign-in ends', async () => {
    const client = { ip: null, user_agent: null };
    await fixture.store.write(async (tx) => {
      for (let i = 1; i < limits.tokens_per_user; i++)
        await fixture.tokens.issue(
          tx,
          root.caller.user_id,
          `svc_${String(i).padStart(43, '0')}`,
          client,
          'password',
        );
    });
    fixture.clock.advance(1_000);
    expect(await isGood(root.token)).toBe('ok');
    await fixture.tokens.flush();
    await fixture.login('root');
    expect(await isGood(root.token)).toBe('ok');
    const { items } = await fixture.tokens.listSignIns(root.caller, {});
    expect(items).toHaveLength(limits.tokens_per_user);
  });
});

describe('refresh', () => {
  it('ends the old token and keeps everything bound to the sign-in', async () => {
    const fresh = await fixture.tokens.refresh(root.caller);
    expect(fresh.expires_in).toBe(12 * 60 * 60);
    expect(await isGood(root.token)).toBe('invalid token');
    const caller = await fixture.tokens.authenticate(fresh.token, null);
    expect(caller.token_id).toBe(root.caller.token_id);
    expect(await fixture.tokens.isLive(root.caller.token_id)).toBe(true);
  });

  it('succeeds for only one of many concurrent requests with the same token', async () => {
    const callers = await Promise.all(
      Array.from({ length: 10 }, () => fixture.tokens.authenticate(root.token, null)),
    );
    const answers = await Promise.all(callers.map((caller) => outcome(fixture.tokens.refresh(caller))));
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'invalid token')).toHaveLength(9);
  });
});

describe('API tokens', () => {
  it('are shown once, listed without the secret, and have no idle expiry', async () => {
    const created = await fixture.tokens.createApi(root.caller, { name: 'ci', ...never });
    const { token, ...shown } = created;
    expect(await fixture.tokens.listApi(root.caller, {})).toEqual({ items: [shown] });
    expect(shown).toEqual({
      id: created.id,
      name: 'ci',
      scopes: ['read', 'operate', 'manage', 'metrics'],
      agent_ids: null,
      team_ids: null,
      created_at: new Date(fixture.clock.now()).toISOString(),
      last_used_at: null,
      expires_at: null,
    });
    fixture.clock.advance(30 * limits.token_absolute_ms);
    expect(await isGood(token)).toBe('ok');
    expect((await fixture.tokens.listApi(root.caller, {})).items[0]!.last_used_at).not.toBeNull();
  });

  it('expire at their expiry time', async () => {
    const expires_at = fixture.clock.now() + 1_000;
    const { token } = await fixture.tokens.createApi(root.caller, { name: 'short', expires_at });
    expect(await isGood(token)).toBe('ok');
    fixture.clock.advance(1_000);
    expect(await isGood(token)).toBe('invalid token');
    expect((await fixture.tokens.listApi(root.caller, {})).items).toEqual([]);
    const late = fixture.tokens.createApi(root.caller, { name: 'late', expires_at });
    expect(await outcome(late)).toBe('expires_at must be in the future');
  });

  it('can neither create other tokens nor refresh themselves', async () => {
    const { token } = await fixture.tokens.createApi(root.caller, { name: 'ci', ...never });
    const caller = await fixture.tokens.authenticate(token, null);
    expect(await outcome(fixture.tokens.createApi(caller, { name: 'more', ...never }))).toBe('not allowed');
    expect(await outcome(fixture.tokens.refresh(caller))).toBe('not allowed');
  });

  it('created twice with one id are one token with the newer secret', async () => {
    const id = 'tok_fromkey';
    const lost = await fixture.tokens.createApi(root.caller, { id, name: 'ci', ...never });
    const created = await fixture.tokens.createApi(root.caller, { id, name: 'ci', ...never });
    expect(created.id).toBe(lost.id);
    expect(await isGood(lost.token)).toBe('invalid token');
    expect(await isGood(created.token)).toBe('ok');
    expect(await outcome(fixture.tokens.createApi(root.caller, { id, name: 'other', ...never }))).toMatch(
      /^idempotency/,
    );
    fixture.clock.advance(sharedLimits.idempotency_keep_ms);
    const { caller } = await fixture.login('root');
    const later = await fixture.tokens.createApi(caller, { id, name: 'other', ...never });
    expect(later.id).not.toBe(id);
    expect(await isGood(created.token)).toBe('ok');
  });

  it('created twice with one id are rejected if their rights differ', async () => {
    const ask = (more: object) =>
      outcome(fixture.tokens.createApi(root.caller, { id: 'tok_fromkey', name: 'ci', ...never, ...more }));
    expect(await ask({ scopes: ['read'] })).toBe('ok');
    expect(await ask({})).toMatch(/^idempotency/);
    expect(await ask({ scopes: ['read'], expires_at: fixture.clock.now() + 1_000 })).toMatch(/^idempotency/);
    expect(await ask({ scopes: ['read'] })).toBe('ok');
  });

  it('apply their scopes and limits to every call, and show them', async () => {
    await addUser(fixture.store, { id: 'usr_1', username: 'eve' });
    await addAgent(fixture.store, 'agt_1');
    const team_id = 'team_one';
    await addTeam(fixture.store, 'one', specOf(['dev']));
    const scopes: Scope[] = ['read', 'operate'];
    const request = { name: 'ci', ...never, scopes, agent_ids: ['agt_1'], team_ids: [team_id] };
    const { token, ...created } = await fixture.tokens.createApi(root.caller, request);
    expect(created).toMatchObject({ scopes, agent_ids: ['agt_1'], team_ids: [team_id] });
    fixture.restart();
    const { grant } = await fixture.tokens.authenticate(token, null);
    expect(grant).toEqual({ scopes, limits: { agent_ids: ['agt_1'], team_ids: [team_id] } });
    expect((await fixture.tokens.listApi(root.caller, {})).items[0]).toMatchObject(created);
  });

  it('are rejected if they name agents or teams that their creator cannot see', async () => {
    await addUser(fixture.store, { id: 'usr_1', username: 'eve' });
    await addAgent(fixture.store, 'agt_1');
    const team_id = 'team_one';
    await addTeam(fixture.store, 'one', specOf(['dev']));
    await fixture.accounts.create(root.caller, { username: 'ada', password: PASSWORD, role: 'user' });
    const { caller } = await fixture.login('ada');
    const ask = (limits: object) =>
      outcome(fixture.tokens.createApi(caller, { name: 'ci', ...never, ...limits }));
    for (const id of ['agt_1', 'agt_none'])
      expect(await ask({ agent_ids: [id] })).toBe(
        `agent_ids must name agents that you can see: ${id} is unknown`,
      );
    for (const id of [team_id, 'team_none'])
      expect(await ask({ team_ids: [id] })).toBe(
        `team_ids must name teams that you can see: ${id} is unknown`,
      );
    expect((await fixture.tokens.listApi(caller, {})).items).toEqual([]);
  });

  it('are audited with their scopes and limits', async () => {
    await addAgent(fixture.store, 'agt_1');
    await fixture.tokens.createApi(root.caller, {
      name: 'ci',
      ...never,
      scopes: ['read'],
      agent_ids: ['agt_1'],
    });
    const { items } = await fixture.audit.list({ event: 'api_token_created' }, {});
    expect(items[0]!.details).toMatchObject({ scopes: ['read'], agent_ids: ['agt_1'], team_ids: [] });
  });

  it('may do nothing without scopes in the database', async () => {
    const { id, token } = await fixture.tokens.createApi(root.caller, { name: 'ci', ...never });
    await fixture.store.write((tx) =>
      tx.run(tx.sql.updateTable('tokens').set({ scopes: null }).where('id', '=', id)),
    );
    fixture.restart();
    expect((await fixture.tokens.authenticate(token, null)).grant).toEqual({ scopes: [], limits: null });
  });

  it('are not found if they belong to others or are of another kind', async () => {
    await fixture.accounts.create(root.caller, { username: 'ada', password: PASSWORD, role: 'user' });
    const ada = await fixture.login('ada');
    const created = await fixture.tokens.createApi(ada.caller, { name: 'mine', ...never });
    expect(await outcome(fixture.tokens.deleteApi(root.caller, created.id))).toBe('token not found');
    expect(await outcome(fixture.tokens.deleteApi(ada.caller, ada.caller.token_id))).toBe('token not found');
    expect(await outcome(fixture.tokens.endSignIn(ada.caller, created.id))).toBe('session not found');
    expect(await outcome(fixture.tokens.endSignIn(root.caller, ada.caller.token_id))).toBe(
      'session not found',
    );
    expect(await isGood(created.token)).toBe('ok');
    expect(await outcome(fixture.tokens.deleteApi(ada.caller, created.id))).toBe('ok');
    expect(await isGood(created.token)).toBe('invalid token');
  });
});

describe('sign-ins', () => {
  it('are listed newest first, page by page, with the current one marked, and can be ended', async () => {
    const phones = [];
    for (let i = 0; i < 4; i++) {
      fixture.clock.advance(i % 2);
      phones.push(await fixture.login('root', PASSWORD, `10.0.0.${i}`));
    }
    const { items } = await fixture.tokens.listSignIns(root.caller, {});
    expect(items).toHaveLength(5);
    expect(items.filter((item) => item.current).map((item) => item.id)).toEqual([root.caller.token_id]);
    const created = items.map((item) => item.created_at);
    expect(created).toEqual([...created].sort().reverse());

    const paged = [];
    let cursor: string | undefined;
    do {
      const page = await fixture.tokens.listSignIns(root.caller, { limit: 2, cursor });
      paged.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    expect(paged).toEqual(items);

    await fixture.tokens.endSignIn(root.caller, phones[1]!.caller.token_id);
    expect(await isGood(phones[1]!.token)).toBe('invalid token');
    expect(await isGood(phones[2]!.token)).toBe('ok');
    expect(await isGood(root.token)).toBe('ok');
  });
});

describe('subscribed devices', () => {
  /** Subscribes a device as this caller. */
  async function subscribe(caller: Caller, id: string): Promise<string> {
    await fixture.store.write((tx) =>
      insertSubscription(tx, {
        ...{ id, user_id: caller.user_id, token_id: caller.token_id, endpoint: `https://push.example/${id}` },
        ...{
          p256dh: '',
          auth: '',
          public_key: '',
          user_agent: null,
          kinds: '[]',
          with_commands: 0,
          of_others: 0,
        },
        ...{ status: 'active', created_at: 0 },
      }),
    );
    return id;
  }
  const left = () =>
    fixture.store.read(async (reader) =>
      (await reader.all(reader.sql.selectFrom('push_subscriptions').select('id').orderBy('num'))).map(
        ({ id }) => id,
      ),
    );

  it('are deleted when the sign-in or token that subscribed them is revoked', async () => {
    const [phone, desk] = [await fixture.login('root'), await fixture.login('root')];
    const { id } = await fixture.tokens.createApi(root.caller, { name: 'ci', ...never });
    await subscribe(root.caller, 'here');
    await subscribe(phone.caller, 'phone');
    await subscribe(desk.caller, 'desk');
    await subscribe({ ...root.caller, token_id: id }, 'ci');
    await fixture.tokens.logout(phone.caller);
    expect(await left()).toEqual(['here', 'desk', 'ci']);
    await fixture.tokens.endSignIn(root.caller, desk.caller.token_id);
    expect(await left()).toEqual(['here', 'ci']);
    await fixture.tokens.deleteApi(root.caller, id);
    expect(await left()).toEqual(['here']);
  });

  it('are deleted when the password changes, except the device that changed it, and with their user', async () => {
    const other = await fixture.login('root');
    await subscribe(root.caller, 'here');
    await subscribe(other.caller, 'other');
    await fixture.accounts.changePassword(root.caller, PASSWORD, `${PASSWORD}!`);
    expect(await left()).toEqual(['here']);
    const ada = await fixture.accounts.create(root.caller, {
      username: 'ada',
      password: PASSWORD,
      role: 'user',
    });
    const { caller } = await fixture.login('ada');
    await subscribe(caller, 'adas');
    await fixture.accounts.delete(root.caller, ada.id);
    expect(await left()).toEqual(['here']);
  });

  it('stay when their sign-in expires', async () => {
    await subscribe(root.caller, 'here');
    fixture.clock.advance(limits.token_absolute_ms);
    await fixture.tokens.sweep();
    expect(await isGood(root.token)).toBe('invalid token');
    expect(await left()).toEqual(['here']);
  });
});
