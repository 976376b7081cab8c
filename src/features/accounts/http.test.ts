import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../server/server.ts';
import { AccountsFixture, PASSWORD } from '../../testing/accounts.ts';
import { openFakeHttp } from '../../testing/http.ts';
import { auditHandlers } from '../audit/http.ts';
import { accountHandlers } from './http.ts';
import type { JoinChallenge } from './join.ts';

let fixture: AccountsFixture;
let server: HttpServer;
beforeEach(async () => {
  fixture = await AccountsFixture.open();
  const { accounts, audit, join, tokens, idempotency } = fixture;
  const passkeysOf = async () => [];
  const base_url = () => server.url;
  server = await openFakeHttp(
    { ...accountHandlers({ accounts, join, tokens, base_url, passkeysOf }), ...auditHandlers(audit) },
    {
      authenticate: (token, ip) => tokens.authenticate(token, ip),
      idempotency,
    },
  );
});
afterEach(async () => {
  await server.drain();
  await fixture.close();
});

interface Answered {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the server compares every answer with its schema already
  body: any;
  headers: Headers;
}

async function call(
  method: string,
  path: string,
  options: { token?: string; body?: unknown; key?: string; headers?: Record<string, string> } = {},
): Promise<Answered> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      ...(options.token && { authorization: `Bearer ${options.token}` }),
      ...(options.body !== undefined && { 'content-type': 'application/json' }),
      ...(options.key && { 'idempotency-key': options.key }),
      ...options.headers,
    },
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

async function challenge(): Promise<JoinChallenge> {
  return JSON.parse(await readFile(fixture.joinFile, 'utf8'));
}

async function joinRoot(): Promise<string> {
  await call('POST', '/api/admin/join-challenge');
  const { token, pin } = await challenge();
  const joined = await call('POST', '/api/join', {
    body: { token, pin, username: 'root', password: PASSWORD },
  });
  return joined.body.token;
}

async function addAda(root: string): Promise<{ id: string; token: string }> {
  const ada = { username: 'ada', password: PASSWORD };
  const { body } = await call('POST', '/api/admin/users', { token: root, body: ada });
  return { id: body.id, token: (await call('POST', '/api/login', { body: ada })).body.token };
}

describe('accounts over HTTP', () => {
  it('returns the challenge file but no secret; the link in the file works once', async () => {
    const created = await call('POST', '/api/admin/join-challenge');
    const { url, token, pin, expires_at } = await challenge();
    expect([created.status, created.body]).toEqual([202, { file: fixture.joinFile, expires_at }]);
    expect(url).toBe(`${server.url}/join#t=${token}`);
    const request = { token, pin, username: 'root', password: PASSWORD };
    const joined = await call('POST', '/api/join', { body: request });
    expect([joined.status, joined.body.user.role, joined.body.expires_in]).toEqual([201, 'root', 43_200]);
    for (const body of [request, {}, { token: 1 }]) {
      const late = await call('POST', '/api/join', { body });
      expect([late.status, late.body]).toEqual([401, { error: 'root already initialized' }]);
    }
    const again = await call('POST', '/api/admin/join-challenge');
    expect([again.status, again.body]).toEqual([401, { error: 'root already initialized' }]);
  });

  it('creates no challenge for a caller behind a proxy', async () => {
    const answer = await call('POST', '/api/admin/join-challenge', {
      headers: { 'x-forwarded-for': '127.0.0.1' },
    });
    expect([answer.status, answer.body]).toEqual([403, { error: 'not allowed' }]);
  });

  it('signs in, gets the user, refreshes and signs out', async () => {
    await joinRoot();
    const wrong = await call('POST', '/api/login', { body: { username: 'root', password: 'no' } });
    expect([wrong.status, wrong.body]).toEqual([401, { error: 'invalid username or password' }]);
    const { body } = await call('POST', '/api/login', { body: { username: 'root', password: PASSWORD } });
    const me = await call('GET', '/api/me', { token: body.token });
    expect(me.body).toEqual({ ...body.user, passkeys: [] });
    const fresh = await call('POST', '/api/token/refresh', { token: body.token });
    expect(fresh.status).toBe(200);
    expect((await call('GET', '/api/me', { token: body.token })).body).toEqual({ error: 'invalid token' });
    const out = await call('POST', '/api/logout', { token: fresh.body.token });
    expect([out.status, out.body]).toEqual([204, null]);
    expect((await call('GET', '/api/me', { token: fresh.body.token })).status).toBe(401);
  });

  it('sends Retry-After after too many failures', async () => {
    const token = await joinRoot();
    for (let i = 0; i < 5; i++)
      await call('POST', '/api/login', { body: { username: 'eve', password: 'no' } });
    const answer = await call('POST', '/api/login', { body: { username: 'eve', password: 'no' } });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '30']);
    expect((await call('GET', '/api/me', { token })).status).toBe(200);
  });

  it('revokes all other tokens when the password changes', async () => {
    const root = await joinRoot();
    const ada = await addAda(root);
    const phone = await call('POST', '/api/login', { body: { username: 'ada', password: PASSWORD } });
    const body = { current_password: PASSWORD, new_password: 'another good one' };
    expect((await call('POST', '/api/me/password', { token: ada.token, body })).status).toBe(200);
    expect((await call('GET', '/api/me', { token: ada.token })).status).toBe(200);
    expect((await call('GET', '/api/me', { token: phone.body.token })).status).toBe(401);
  });

  it('shows a new API token once, and again for the same idempotency key', async () => {
    const token = await joinRoot();
    const request = { token, key: 'k-1', body: { name: 'ci' } };
    const [one, two] = await Promise.all([
      call('POST', '/api/tokens', request),
      call('POST', '/api/tokens', request),
    ]);
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(two.body).toEqual(one.body);
    expect(one.headers.get('location')).toBe(`/api/tokens/${one.body.id}`);
    expect((await call('GET', '/api/me', { token: one.body.token })).status).toBe(200);
    const other = await call('POST', '/api/tokens', { ...request, body: { name: 'cd' } });
    expect([other.status, other.body]).toEqual([
      409,
      { error: 'idempotency key reused with a different request' },
    ]);

    const listed = await call('GET', '/api/tokens', { token });
    expect(listed.body).toHaveLength(1);
    expect(listed.body[0].token).toBeUndefined();
    expect((await call('GET', '/api/tokens?limit=5', { token })).body.items).toHaveLength(1);
    expect((await call('DELETE', `/api/tokens/${one.body.id}`, { token })).status).toBe(204);
    expect((await call('GET', '/api/me', { token: one.body.token })).status).toBe(401);
    const gone = await call('DELETE', `/api/tokens/${one.body.id}`, { token });
    expect([gone.status, gone.body]).toEqual([404, { error: 'token not found' }]);
  });

  it('rejects invalid times', async () => {
    const token = await joinRoot();
    for (const expires_at of ['tomorrow', '2026-13-01T00:00:00Z', 5, '2001-01-01T00:00:00Z']) {
      const answer = await call('POST', '/api/tokens', { token, body: { name: 'ci', expires_at } });
      expect([expires_at, answer.status]).toEqual([expires_at, 400]);
    }
    expect((await call('GET', '/api/admin/audit?since=yesterday', { token })).status).toBe(400);
  });

  it('lists the sign-ins of the caller, and ends one of them', async () => {
    const root = await joinRoot();
    const phone = await call('POST', '/api/login', {
      body: { username: 'root', password: PASSWORD },
      headers: { 'user-agent': 'phone' },
    });
    const { body } = await call('GET', '/api/me/sessions', { token: root });
    const other = body.find((item: { user_agent: string }) => item.user_agent === 'phone');
    expect([body.length, other.current, other.ip]).toEqual([2, false, '127.0.0.1']);
    expect((await call('DELETE', `/api/me/sessions/${other.id}`, { token: root })).status).toBe(204);
    expect((await call('GET', '/api/me', { token: phone.body.token })).status).toBe(401);
  });

  it('only lets root manage users and read the audit log', async () => {
    const root = await joinRoot();
    const ada = await addAda(root);
    for (const [method, path] of [
      ['GET', '/api/admin/users'],
      ['POST', '/api/admin/users'],
      ['PATCH', `/api/admin/users/${ada.id}`],
      ['DELETE', `/api/admin/users/${ada.id}`],
      ['GET', '/api/admin/audit'],
    ] as const) {
      const answer = await call(method, path, { token: ada.token });
      expect([path, answer.status, answer.body]).toEqual([path, 401, { error: 'root required' }]);
    }
    const users = await call('GET', '/api/admin/users', { token: root });
    expect(users.body.map((user: { username: string }) => user.username).sort()).toEqual(['ada', 'root']);
    const patched = await call('PATCH', `/api/admin/users/${ada.id}`, {
      token: root,
      body: { role: 'root' },
    });
    expect([patched.status, patched.body.role]).toEqual([200, 'root']);
    expect((await call('GET', '/api/me', { token: ada.token })).status).toBe(401);
    expect((await call('DELETE', `/api/admin/users/${ada.id}`, { token: root })).status).toBe(204);
    expect((await call('GET', `/api/admin/users/${ada.id}`, { token: root })).status).toBe(404);
    const weak = { username: 'bob', password: 'short' };
    const refused = await call('POST', '/api/admin/users', { token: root, body: weak });
    expect([refused.status, refused.body]).toEqual([
      400,
      { error: 'password must be at least 12 characters' },
    ]);
  });

  it('filters and paginates the audit log', async () => {
    const root = await joinRoot();
    await addAda(root);
    const created = await call('GET', '/api/admin/audit?event=user_created', { token: root });
    expect(created.body.map((record: { details: object }) => record.details)).toMatchObject([
      { username: 'ada', joined: false },
      { username: 'root', joined: true },
    ]);
    const page = await call('GET', '/api/admin/audit?limit=2', { token: root });
    expect(page.body.items).toHaveLength(2);
    const next = await call('GET', `/api/admin/audit?limit=2&cursor=${page.body.next_cursor}`, {
      token: root,
    });
    expect(next.body.items[0].id).toBe(page.body.items[1].id - 1);
    const bad = await call('GET', '/api/admin/audit?cursor=nonsense', { token: root });
    expect([bad.status, bad.body]).toEqual([400, { error: 'invalid cursor' }]);
  });
});
