import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import type { Scope } from '../../core/grant.ts';
import { addAgent } from '../../store/testing.ts';
import { AccountsRoom, outcome, PASSWORD } from '../../testing/accounts.ts';
import { addTeam, addUser, specOf } from '../../testing/team.ts';
import type { Caller } from '../accounts/rules.ts';
import { insertSubscription } from '../notifications/queries.ts';
import { limits } from './limits.ts';

let room: AccountsRoom;
let root: { caller: Caller; token: string };
beforeEach(async () => {
  room = await AccountsRoom.open();
  root = await room.joinRoot();
});
afterEach(() => room.close());

const isGood = (token: string) => outcome(room.tokens.authenticate(token, '127.0.0.1'));
const never = { expires_at: null };

describe('tokens', () => {
  it('identify their user, and are stored as SHA-256 only', async () => {
    expect(root.token).toMatch(/^svc_[A-Za-z0-9_-]{43}$/);
    expect(await room.tokens.authenticate(root.token, '10.0.0.9')).toEqual({
      user_id: root.caller.user_id,
      username: 'root',
      role: 'root',
      token_id: root.caller.token_id,
      grant: null,
      ip: '10.0.0.9',
    });
    const rows = await room.store.read((r) => r.all(r.sql.selectFrom('tokens').selectAll()));
    expect(JSON.stringify(rows)).not.toContain(root.token);
    expect(rows[0]!.hash).toHaveLength(32);
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
    room.clock.advance(limits.token_idle_ms - 1);
    expect(await isGood(root.token)).toBe('ok');
    room.clock.advance(limits.token_idle_ms - 1);
    await room.store.write(() => null);
    room.restart();
    expect(await isGood(root.token)).toBe('ok');
    room.clock.advance(limits.token_idle_ms);
    expect(await room.tokens.isLive(root.caller.token_id)).toBe(false);
    expect(await isGood(root.token)).toBe('invalid token');
  });

  it('expire 7 days after the sign-in, regardless of use and refresh', async () => {
    let { token } = root;
    for (let hours = 6; hours < 7 * 24; hours += 6) {
      room.clock.advance(6 * 60 * 60 * 1000);
      const caller = await room.tokens.authenticate(token, null);
      const fresh = await room.tokens.refresh(caller);
      token = fresh.token;
      expect(fresh.expires_in).toBe(Math.min(12, 7 * 24 - hours) * 60 * 60);
    }
    room.clock.advance(6 * 60 * 60 * 1000 - 1);
    expect(await isGood(token)).toBe('ok');
    room.clock.advance(1);
    expect(await isGood(token)).toBe('invalid token');
  });

  it('are deleted only after they expire', async () => {
    expect(await room.tokens.sweep()).toBe(0);
    room.clock.advance(limits.token_idle_ms);
    expect(await room.tokens.sweep()).toBe(1);
  });

  it('save their last use about once a minute', async () => {
    const used = async () =>
      (await room.store.read((r) => r.get(r.sql.selectFrom('tokens').select('last_used_at'))))!.last_used_at;
    const start = room.clock.now();
    for (let i = 0; i < 59; i++) {
      room.clock.advance(1_000);
      await room.tokens.authenticate(root.token, null);
    }
    await room.store.write(() => null);
    expect(await used()).toBe(start);
    room.clock.advance(1_000);
    await room.tokens.authenticate(root.token, null);
    await room.store.write(() => null);
    expect(await used()).toBe(start + 60_000);
    room.clock.advance(5_000);
    await room.tokens.authenticate(root.token, null);
    await room.tokens.flush();
    expect(await used()).toBe(start + 65_000);
  });

  it('leave the cache before the caller learns that they were revoked', async () => {
    for (let i = 0; i < 20; i++) {
      const { token, caller } = await room.login('root');
      const checks = Array.from({ length: 10 }, () => isGood(token));
      await room.tokens.logout(caller);
      expect(await isGood(token)).toBe('invalid token');
      expect(await room.tokens.isLive(caller.token_id)).toBe(false);
      for (const answer of await Promise.all(checks)) expect(['ok', 'invalid token']).toContain(answer);
      expect(await isGood(token)).toBe('invalid token');
    }
  });

  it('are not restored by a read that began before they were revoked', async () => {
    for (let i = 0; i < 20; i++) {
      const { token, caller } = await room.login('root');
      room.restart();
      const [, request] = await Promise.all([room.tokens.logout(caller), isGood(token), isGood(token)]);
      expect(['ok', 'invalid token']).toContain(request);
      expect(await isGood(token)).toBe('invalid token');
    }
  });

  it('are limited in number: the least recently used sign-in ends', async () => {
    const client = { ip: null, user_agent: null };
    await room.store.write((tx) => {
      for (let i = 1; i < limits.tokens_per_user; i++)
        room.tokens.issue(tx, root.caller.user_id, `svc_${String(i).padStart(43, '0')}`, client, 'password');
    });
    room.clock.advance(1_000);
    expect(await isGood(root.token)).toBe('ok');
    await room.tokens.flush();
    await room.login('root');
    expect(await isGood(root.token)).toBe('ok');
    const { items } = await room.tokens.listSignIns(root.caller, {});
    expect(items).toHaveLength(limits.tokens_per_user);
  });
});

describe('refresh', () => {
  it('ends the old token and keeps everything bound to the sign-in', async () => {
    const fresh = await room.tokens.refresh(root.caller);
    expect(fresh.expires_in).toBe(12 * 60 * 60);
    expect(await isGood(root.token)).toBe('invalid token');
    const caller = await room.tokens.authenticate(fresh.token, null);
    expect(caller.token_id).toBe(root.caller.token_id);
    expect(await room.tokens.isLive(root.caller.token_id)).toBe(true);
  });

  it('succeeds for only one of many concurrent requests with the same token', async () => {
    const callers = await Promise.all(
      Array.from({ length: 10 }, () => room.tokens.authenticate(root.token, null)),
    );
    const answers = await Promise.all(callers.map((caller) => outcome(room.tokens.refresh(caller))));
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'invalid token')).toHaveLength(9);
  });
});

describe('API tokens', () => {
  it('are shown once, listed without the secret, and have no idle expiry', async () => {
    const created = await room.tokens.createApi(root.caller, { name: 'ci', ...never });
    const { token, ...shown } = created;
    expect(await room.tokens.listApi(root.caller, {})).toEqual({ items: [shown] });
    expect(shown).toEqual({
      id: created.id,
      name: 'ci',
      scopes: ['read', 'operate', 'manage', 'metrics'],
      agent_ids: null,
      team_ids: null,
      created_at: new Date(room.clock.now()).toISOString(),
      last_used_at: null,
      expires_at: null,
    });
    room.clock.advance(30 * limits.token_absolute_ms);
    expect(await isGood(token)).toBe('ok');
    expect((await room.tokens.listApi(root.caller, {})).items[0]!.last_used_at).not.toBeNull();
  });

  it('expire at their expiry time', async () => {
    const expires_at = room.clock.now() + 1_000;
    const { token } = await room.tokens.createApi(root.caller, { name: 'short', expires_at });
    expect(await isGood(token)).toBe('ok');
    room.clock.advance(1_000);
    expect(await isGood(token)).toBe('invalid token');
    expect((await room.tokens.listApi(root.caller, {})).items).toEqual([]);
    const late = room.tokens.createApi(root.caller, { name: 'late', expires_at });
    expect(await outcome(late)).toBe('expires_at must be in the future');
  });

  it('can neither create other tokens nor refresh themselves', async () => {
    const { token } = await room.tokens.createApi(root.caller, { name: 'ci', ...never });
    const caller = await room.tokens.authenticate(token, null);
    expect(await outcome(room.tokens.createApi(caller, { name: 'more', ...never }))).toBe('not allowed');
    expect(await outcome(room.tokens.refresh(caller))).toBe('not allowed');
  });

  it('created twice with one id are one token with the newer secret', async () => {
    const id = 'tok_fromkey';
    const lost = await room.tokens.createApi(root.caller, { id, name: 'ci', ...never });
    const created = await room.tokens.createApi(root.caller, { id, name: 'ci', ...never });
    expect(created.id).toBe(lost.id);
    expect(await isGood(lost.token)).toBe('invalid token');
    expect(await isGood(created.token)).toBe('ok');
    expect(await outcome(room.tokens.createApi(root.caller, { id, name: 'other', ...never }))).toMatch(
      /^idempotency/,
    );
    room.clock.advance(sharedLimits.idempotency_keep_ms);
    const { caller } = await room.login('root');
    const later = await room.tokens.createApi(caller, { id, name: 'other', ...never });
    expect(later.id).not.toBe(id);
    expect(await isGood(created.token)).toBe('ok');
  });

  it('created twice with one id are rejected if their rights differ', async () => {
    const ask = (more: object) =>
      outcome(room.tokens.createApi(root.caller, { id: 'tok_fromkey', name: 'ci', ...never, ...more }));
    expect(await ask({ scopes: ['read'] })).toBe('ok');
    expect(await ask({})).toMatch(/^idempotency/);
    expect(await ask({ scopes: ['read'], expires_at: room.clock.now() + 1_000 })).toMatch(/^idempotency/);
    expect(await ask({ scopes: ['read'] })).toBe('ok');
  });

  it('apply their scopes and limits to every call, and show them', async () => {
    await addUser(room.store, { id: 'usr_1', username: 'eve' });
    await addAgent(room.store, 'agt_1');
    const team_id = 'team_one';
    await addTeam(room.store, 'one', specOf(['dev']));
    const scopes: Scope[] = ['read', 'operate'];
    const request = { name: 'ci', ...never, scopes, agent_ids: ['agt_1'], team_ids: [team_id] };
    const { token, ...created } = await room.tokens.createApi(root.caller, request);
    expect(created).toMatchObject({ scopes, agent_ids: ['agt_1'], team_ids: [team_id] });
    room.restart();
    const { grant } = await room.tokens.authenticate(token, null);
    expect(grant).toEqual({ scopes, limits: { agent_ids: ['agt_1'], team_ids: [team_id] } });
    expect((await room.tokens.listApi(root.caller, {})).items[0]).toMatchObject(created);
  });

  it('are rejected if they name agents or teams that their creator cannot see', async () => {
    await addUser(room.store, { id: 'usr_1', username: 'eve' });
    await addAgent(room.store, 'agt_1');
    const team_id = 'team_one';
    await addTeam(room.store, 'one', specOf(['dev']));
    await room.accounts.create(root.caller, { username: 'ada', password: PASSWORD, role: 'user' });
    const { caller } = await room.login('ada');
    const ask = (limits: object) =>
      outcome(room.tokens.createApi(caller, { name: 'ci', ...never, ...limits }));
    for (const id of ['agt_1', 'agt_none'])
      expect(await ask({ agent_ids: [id] })).toBe(
        `agent_ids must name agents that you can see: ${id} is unknown`,
      );
    for (const id of [team_id, 'team_none'])
      expect(await ask({ team_ids: [id] })).toBe(
        `team_ids must name teams that you can see: ${id} is unknown`,
      );
    expect((await room.tokens.listApi(caller, {})).items).toEqual([]);
  });

  it('are audited with their scopes and limits', async () => {
    await addAgent(room.store, 'agt_1');
    await room.tokens.createApi(root.caller, {
      name: 'ci',
      ...never,
      scopes: ['read'],
      agent_ids: ['agt_1'],
    });
    const { items } = await room.audit.list({ event: 'api_token_created' }, {});
    expect(items[0]!.details).toMatchObject({ scopes: ['read'], agent_ids: ['agt_1'], team_ids: [] });
  });

  it('may do nothing without scopes in the database', async () => {
    const { id, token } = await room.tokens.createApi(root.caller, { name: 'ci', ...never });
    await room.store.write((tx) =>
      tx.run(tx.sql.updateTable('tokens').set({ scopes: null }).where('id', '=', id)),
    );
    room.restart();
    expect((await room.tokens.authenticate(token, null)).grant).toEqual({ scopes: [], limits: null });
  });

  it('are not found if they belong to others or are of another kind', async () => {
    await room.accounts.create(root.caller, { username: 'ada', password: PASSWORD, role: 'user' });
    const ada = await room.login('ada');
    const created = await room.tokens.createApi(ada.caller, { name: 'mine', ...never });
    expect(await outcome(room.tokens.deleteApi(root.caller, created.id))).toBe('token not found');
    expect(await outcome(room.tokens.deleteApi(ada.caller, ada.caller.token_id))).toBe('token not found');
    expect(await outcome(room.tokens.endSignIn(ada.caller, created.id))).toBe('session not found');
    expect(await outcome(room.tokens.endSignIn(root.caller, ada.caller.token_id))).toBe('session not found');
    expect(await isGood(created.token)).toBe('ok');
    expect(await outcome(room.tokens.deleteApi(ada.caller, created.id))).toBe('ok');
    expect(await isGood(created.token)).toBe('invalid token');
  });
});

describe('sign-ins', () => {
  it('are listed newest first, page by page, with the current one marked, and can be ended', async () => {
    const phones = [];
    for (let i = 0; i < 4; i++) {
      room.clock.advance(i % 2);
      phones.push(await room.login('root', PASSWORD, `10.0.0.${i}`));
    }
    const { items } = await room.tokens.listSignIns(root.caller, {});
    expect(items).toHaveLength(5);
    expect(items.filter((item) => item.current).map((item) => item.id)).toEqual([root.caller.token_id]);
    const created = items.map((item) => item.created_at);
    expect(created).toEqual([...created].sort().reverse());

    const paged = [];
    let cursor: string | undefined;
    do {
      const page = await room.tokens.listSignIns(root.caller, { limit: 2, cursor });
      paged.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    expect(paged).toEqual(items);

    await room.tokens.endSignIn(root.caller, phones[1]!.caller.token_id);
    expect(await isGood(phones[1]!.token)).toBe('invalid token');
    expect(await isGood(phones[2]!.token)).toBe('ok');
    expect(await isGood(root.token)).toBe('ok');
  });
});

describe('subscribed devices', () => {
  /** Subscribes a device as this caller. */
  async function subscribe(caller: Caller, id: string): Promise<string> {
    await room.store.write((tx) =>
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
    room.store.read((reader) =>
      reader.all(reader.sql.selectFrom('push_subscriptions').select('id').orderBy('num')).map(({ id }) => id),
    );

  it('are deleted when the sign-in or token that subscribed them is revoked', async () => {
    const [phone, desk] = [await room.login('root'), await room.login('root')];
    const { id } = await room.tokens.createApi(root.caller, { name: 'ci', ...never });
    await subscribe(root.caller, 'here');
    await subscribe(phone.caller, 'phone');
    await subscribe(desk.caller, 'desk');
    await subscribe({ ...root.caller, token_id: id }, 'ci');
    await room.tokens.logout(phone.caller);
    expect(await left()).toEqual(['here', 'desk', 'ci']);
    await room.tokens.endSignIn(root.caller, desk.caller.token_id);
    expect(await left()).toEqual(['here', 'ci']);
    await room.tokens.deleteApi(root.caller, id);
    expect(await left()).toEqual(['here']);
  });

  it('are deleted when the password changes, except the device that changed it, and with their user', async () => {
    const other = await room.login('root');
    await subscribe(root.caller, 'here');
    await subscribe(other.caller, 'other');
    await room.accounts.changePassword(root.caller, PASSWORD, `${PASSWORD}!`);
    expect(await left()).toEqual(['here']);
    const ada = await room.accounts.create(root.caller, {
      username: 'ada',
      password: PASSWORD,
      role: 'user',
    });
    const { caller } = await room.login('ada');
    await subscribe(caller, 'adas');
    await room.accounts.delete(root.caller, ada.id);
    expect(await left()).toEqual(['here']);
  });

  it('stay when their sign-in expires', async () => {
    await subscribe(root.caller, 'here');
    room.clock.advance(limits.token_absolute_ms);
    await room.tokens.sweep();
    expect(await isGood(root.token)).toBe('invalid token');
    expect(await left()).toEqual(['here']);
  });
});
