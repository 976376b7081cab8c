import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addAgent } from '../../store/testing.ts';
import { AccountsFixture, outcome, PASSWORD } from '../../testing/accounts.ts';
import { insertNode } from '../nodes/queries.ts';
import type { Caller } from './rules.ts';

let fixture: AccountsFixture;
let root: { caller: Caller; token: string };
beforeEach(async () => {
  fixture = await AccountsFixture.open();
  root = await fixture.joinRoot();
});
afterEach(() => fixture.close());

const isGood = (token: string) => outcome((async () => fixture.tokens.authenticate(token, null))());
const add = (username: string, role: 'root' | 'user' = 'user', id?: string) =>
  fixture.accounts.create(root.caller, { id, username, password: PASSWORD, role });

describe('sign-in', () => {
  it('returns a token, its idle expiry and the user', async () => {
    const signedIn = await fixture.accounts.login('root', PASSWORD, {
      ip: '10.0.0.1',
      user_agent: 'x'.repeat(5_000),
    });
    expect(signedIn).toEqual({
      token: expect.stringMatching(/^svc_/),
      expires_in: 43_200,
      user: { id: root.caller.user_id, username: 'root', role: 'root', created_at: expect.any(String) },
    });
    const { items } = await fixture.tokens.listSignIns(root.caller, {});
    expect(items.map((item) => item.user_agent?.length)).toContain(256);
  });

  it('gives the same error for an unknown user and a wrong password', async () => {
    for (const [name, password] of [
      ['root', 'wrong password'],
      ['nobody', PASSWORD],
      ['ROOT', PASSWORD],
      ['', ''],
    ] as const)
      expect(await outcome(fixture.login(name, password))).toBe('invalid username or password');
  });

  it('computes a hash for unknown users too', async () => {
    const real = await AccountsFixture.open({ real_hashes: true });
    try {
      await real.joinRoot();
      const hashes: (string | undefined)[] = [];
      const verify = real.passwords.verify.bind(real.passwords);
      real.passwords.verify = (password, phc) => {
        hashes.push(phc);
        return verify(password, phc);
      };
      expect(await outcome(real.login('root', 'wrong password'))).toBe('invalid username or password');
      expect(await outcome(real.login('nobody', 'wrong password'))).toBe('invalid username or password');
      expect(await outcome(real.login('root'))).toBe('ok');
      expect(hashes.map((phc) => typeof phc)).toEqual(['string', 'undefined', 'string']);
    } finally {
      await real.close();
    }
  });

  it('replaces an outdated hash', async () => {
    const real = await AccountsFixture.open({ real_hashes: true });
    try {
      await real.joinRoot();
      const hashOf = async () =>
        (await real.store.read((r) => r.get(r.sql.selectFrom('users').select('password_hash'))))!
          .password_hash;
      const weak = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
      await real.store.write((tx) => tx.run(tx.sql.updateTable('users').set({ password_hash: weak })));
      await real.login('root', 'password');
      expect(await hashOf()).toMatch(/m=19456,t=2,p=1/);
      await real.login('root', 'password');
    } finally {
      await real.close();
    }
  });

  it('is rejected if the password changes meanwhile', async () => {
    const verify = fixture.passwords.verify.bind(fixture.passwords);
    fixture.passwords.verify = async (password, phc) => {
      const fits = await verify(password, phc);
      await fixture.store.write((tx) =>
        tx.run(tx.sql.updateTable('users').set({ password_hash: 'cheap changed' })),
      );
      return fits;
    };
    expect(await outcome(fixture.login('root'))).toBe('invalid username or password');
  });
});

describe('password change', () => {
  const change = (caller: Caller, current: string, wanted: string) =>
    outcome(fixture.accounts.changePassword(caller, current, wanted));

  it("revokes all tokens of the user, including API tokens, except the caller's", async () => {
    await add('ada');
    const ada = await fixture.login('ada');
    const phone = await fixture.login('ada');
    const api = await fixture.tokens.createApi(ada.caller, { name: 'ci', expires_at: null });
    expect(await change(ada.caller, PASSWORD, 'another good one')).toBe('ok');
    expect(await isGood(ada.token)).toBe('ok');
    expect(await isGood(phone.token)).toBe('invalid token');
    expect(await fixture.tokens.isLive(phone.caller.token_id)).toBe(false);
    expect(await isGood(api.token)).toBe('invalid token');
    expect(await isGood(root.token)).toBe('ok');
    expect(await outcome(fixture.login('ada'))).toBe('invalid username or password');
    expect(await outcome(fixture.login('ada', 'another good one'))).toBe('ok');
  });

  it('requires the current password, and a new one that satisfies the policy', async () => {
    expect(await change(root.caller, 'wrong password', 'another good one')).toBe(
      'invalid username or password',
    );
    expect(await change(root.caller, PASSWORD, 'short')).toBe('password must be at least 12 characters');
    expect(await outcome(fixture.login('root'))).toBe('ok');
  });

  it('counts wrong guesses like failed sign-ins', async () => {
    for (let i = 0; i < 5; i++) await change(root.caller, 'wrong password', 'another good one');
    expect(await change(root.caller, PASSWORD, 'another good one')).toBe(
      'too many attempts; try again later',
    );
  });
});

describe('users', () => {
  it('need a unique name and a password that satisfies the policy', async () => {
    expect(await add('ada')).toMatchObject({ username: 'ada', role: 'user' });
    expect(await outcome(add('ada'))).toBe('username already exists');
    for (const name of ['', 'Ada', 'a b', 'a/b', 'x'.repeat(65), 'ä', 'a\n'])
      expect(await outcome(add(name))).toMatch(/^username must be 1 to 64/);
    const weak = fixture.accounts.create(root.caller, { username: 'bob', password: 'short', role: 'user' });
    expect(await outcome(weak)).toBe('password must be at least 12 characters');
  });

  it('created concurrently with one name are created once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => outcome(add('ada'))));
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'username already exists')).toHaveLength(19);
  });

  it('created twice with one key are created once, and another name with that key is rejected', async () => {
    const one = await add('ada', 'user', 'usr_fromkey');
    expect(await add('ada', 'user', 'usr_fromkey')).toEqual(one);
    expect(await outcome(add('bob', 'user', 'usr_fromkey'))).toMatch(/^idempotency key reused/);
    fixture.clock.advance(24 * 60 * 60 * 1000);
    expect((await add('bob', 'user', 'usr_fromkey')).id).not.toBe(one.id);
    expect((await fixture.audited()).filter((event) => event === 'user_created')).toHaveLength(3);
  });

  it('are listed newest first, all at once or page by page', async () => {
    for (const name of ['a', 'b', 'c', 'd']) {
      await add(name);
      fixture.clock.advance(name === 'b' ? 0 : 1);
    }
    const { items, next_cursor } = await fixture.accounts.list({});
    expect(items).toHaveLength(5);
    expect(next_cursor).toBeUndefined();
    const first = await fixture.accounts.list({ limit: 2 });
    const second = await fixture.accounts.list({ limit: 3, cursor: first.next_cursor });
    expect([...first.items, ...second.items]).toEqual(items);
    expect(second.next_cursor).toBeUndefined();
  });

  it('lose their tokens when root changes their role or password', async () => {
    const { id } = await add('ada');
    const first = await fixture.login('ada');
    await fixture.accounts.update(root.caller, id, { role: 'root' });
    expect(await isGood(first.token)).toBe('invalid token');
    const second = await fixture.login('ada');
    expect(second.caller.role).toBe('root');
    await fixture.accounts.update(root.caller, id, { password: 'another good one' });
    expect(await isGood(second.token)).toBe('invalid token');
    expect(await outcome(fixture.login('ada', 'another good one'))).toBe('ok');
  });

  it('keep their tokens when their name changes', async () => {
    const { id } = await add('ada');
    const ada = await fixture.login('ada');
    expect(await outcome(fixture.accounts.update(root.caller, id, { username: 'root' }))).toBe(
      'username already exists',
    );
    await fixture.accounts.update(root.caller, id, { username: 'lovelace' });
    expect((await fixture.tokens.authenticate(ada.token, null)).username).toBe('lovelace');
    expect(await outcome(fixture.accounts.update(root.caller, 'usr_none', { role: 'user' }))).toBe(
      'user not found',
    );
  });

  it('always include a root user: the last one can be neither deleted nor demoted, even concurrently', async () => {
    const last = 'the last root user can be neither deleted nor demoted';
    const { user_id } = root.caller;
    expect(await outcome(fixture.accounts.delete(root.caller, user_id))).toBe(last);
    expect(await outcome(fixture.accounts.update(root.caller, user_id, { role: 'user' }))).toBe(last);
    const { id } = await add('second', 'root');
    const answers = await Promise.all([
      outcome(fixture.accounts.delete(root.caller, id)),
      outcome(fixture.accounts.update(root.caller, user_id, { role: 'user' })),
    ]);
    // If the demotion is first, it also ends the token of the deletion.
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect([last, 'invalid token']).toContain(answers.find((answer) => answer !== 'ok'));
  });

  it('cannot be created, changed or deleted by a root user who was demoted while the password was hashed', async () => {
    const { id } = await add('ada');
    await add('second', 'root');
    const second = await fixture.login('second');
    const hash = fixture.passwords.hash.bind(fixture.passwords);
    fixture.passwords.hash = async (password) => {
      const hashed = await hash(password);
      fixture.passwords.hash = hash;
      await fixture.accounts.update(root.caller, second.caller.user_id, { role: 'user' });
      return hashed;
    };
    const eve = { username: 'eve', password: PASSWORD, role: 'root' as const };
    expect(await outcome(fixture.accounts.create(second.caller, eve))).toBe('invalid token');
    expect(await outcome(fixture.accounts.update(second.caller, id, { role: 'root' }))).toBe('invalid token');
    expect(await outcome(fixture.accounts.delete(second.caller, id))).toBe('invalid token');
    const { items } = await fixture.accounts.list({});
    expect(items.map(({ username, role }) => [username, role]).sort()).toEqual([
      ['ada', 'user'],
      ['root', 'root'],
      ['second', 'user'],
    ]);
  });

  it('are deleted with their tokens, but not while they have agents', async () => {
    const { id } = await add('ada');
    const ada = await fixture.login('ada');
    await addAgent(fixture.store, 'agt_1');
    const owned = (owner_id: string) =>
      fixture.store.write((tx) => tx.run(tx.sql.updateTable('agents').set({ owner_id })));
    await owned(id);
    expect(await outcome(fixture.accounts.delete(root.caller, id))).toBe('user has agents');
    expect(await isGood(ada.token)).toBe('ok');
    await owned(root.caller.user_id);
    const box = { id: 'box', name: 'box', grpc_target: 'https://10.0.0.2:1' };
    const optional = { tls_server_name: null, default_worktree_root: null };
    await fixture.store.write((tx) => insertNode(tx, { ...box, ...optional }, 1));
    await fixture.accounts.delete(root.caller, id);
    const intents = await fixture.store.read((reader) =>
      reader.all(reader.sql.selectFrom('outbox').select(['node_id', 'kind', 'payload']).orderBy('node_id')),
    );
    const payload = JSON.stringify({ owner_id: id });
    expect(intents).toEqual(['box', 'main'].map((node_id) => ({ node_id, kind: 'forget_owner', payload })));
    expect(await isGood(ada.token)).toBe('invalid token');
    expect(await fixture.tokens.isLive(ada.caller.token_id)).toBe(false);
    expect(await outcome(fixture.accounts.delete(root.caller, id))).toBe('user not found');
    expect(await outcome(fixture.login('ada'))).toBe('invalid username or password');
  });

  it('have every change audited, without secrets', async () => {
    const { id } = await add('ada');
    const ada = await fixture.login('ada');
    const api = await fixture.tokens.createApi(ada.caller, { name: 'ci', expires_at: null });
    await fixture.tokens.deleteApi(ada.caller, api.id);
    const phone = await fixture.login('ada');
    await fixture.tokens.endSignIn(ada.caller, phone.caller.token_id);
    await fixture.tokens.refresh(ada.caller);
    await fixture.accounts.changePassword(ada.caller, PASSWORD, 'another good one');
    await fixture.tokens.logout(ada.caller);
    await fixture.accounts.update(root.caller, id, { password: PASSWORD });
    await fixture.accounts.delete(root.caller, id);
    const created = ['user_created', 'user_login', 'api_token_created', 'api_token_deleted', 'user_login'];
    const ended = ['session_ended', 'token_refreshed', 'password_changed', 'user_logout'];
    expect((await fixture.audited()).slice(3)).toEqual([
      ...created,
      ...ended,
      'user_updated',
      'user_deleted',
    ]);
    const { items } = await fixture.audit.list({}, {});
    const text = JSON.stringify(items);
    for (const secret of [ada.token, api.token, PASSWORD, 'another good one', 'cheap'])
      expect(text).not.toContain(secret);
    expect((await fixture.audit.verify()).broken_id).toBeNull();
  });
});
