import { afterEach, beforeEach, expect, it } from 'vitest';
import type { HttpServer } from '../../server/server.ts';
import { type AccountsFixture, PASSWORD } from '../../testing/accounts.ts';
import { Authenticator } from '../../testing/authenticator.ts';
import { openFakeHttp, requesterWithToken } from '../../testing/http.ts';
import { accountHandlers } from '../accounts/http.ts';
import { passkeyHandlers } from './http.ts';
import { openPasskeysFixture, type PasskeysFixture } from './testing.ts';

let fixture: AccountsFixture;
let where: PasskeysFixture['where'];
let server: HttpServer;
let token: string;
beforeEach(async () => {
  const opened = await openPasskeysFixture();
  ({ fixture, where } = opened);
  const { passkeys } = opened;
  const { accounts, join, tokens, idempotency } = fixture;
  const passkeysOf = (user_id: string) => passkeys.list(user_id);
  const handlers = {
    ...accountHandlers({ accounts, join, tokens, base_url: () => server.url, passkeysOf }),
    ...passkeyHandlers(passkeys),
  };
  const authenticate = (given: string, ip: string | null) => tokens.authenticate(given, ip);
  server = await openFakeHttp(handlers, { authenticate, idempotency });
  const { origin } = new URL(server.url.replace('127.0.0.1', 'localhost'));
  where.relying_party = { party: { id: 'localhost', origin, name: 'svc' }, reason: null };
  ({ token } = await fixture.joinRoot());
});
afterEach(async () => {
  await server.drain();
  await fixture.close();
});

const request: ReturnType<typeof requesterWithToken> = (method, path, body, options) =>
  requesterWithToken(() => server, token)(method, path, body, options);
const origin = () => where.relying_party.party!.origin;

it('adds a passkey, signs in with it, renames and removes it', async () => {
  const where = await request('GET', '/api/passkeys/relying-party');
  expect(where.body).toEqual({ rp_id: 'localhost', origin: origin(), reason: null });
  const started = await request('POST', '/api/passkeys/registration/start');
  expect(started.status).toBe(200);
  const device = new Authenticator(origin());
  const body = { name: 'Laptop', response: device.register(started.body.options) };
  const created = await request('POST', '/api/passkeys/registration/finish', body, { key: 'once' });
  expect([created.status, created.location]).toEqual([201, `/api/passkeys/${created.body.id}`]);
  const again = await request('POST', '/api/passkeys/registration/finish', body, { key: 'once' });
  expect([again.status, again.body]).toEqual([201, created.body]);
  expect((await request('GET', '/api/me')).body.passkeys).toEqual([created.body]);

  const begun = await request('POST', '/api/passkeys/login/start');
  const { login_id, options } = begun.body;
  const response = device.login(options);
  const signedIn = await request('POST', '/api/passkeys/login/finish', { login_id, response });
  expect([signedIn.status, signedIn.body.expires_in, signedIn.body.user.username]).toEqual([
    200,
    43_200,
    'root',
  ]);
  const late = await request('POST', '/api/passkeys/login/finish', { login_id, response });
  expect([late.status, late.body]).toEqual([401, { error: 'passkey was not accepted' }]);

  const by_passkey = { token: signedIn.body.token as string };
  const path = `/api/passkeys/${created.body.id}`;
  const renamed = await request('PATCH', path, { name: 'Old laptop' }, by_passkey);
  expect([renamed.status, renamed.body.name]).toEqual([200, 'Old laptop']);
  const refused = await request('DELETE', path, undefined, by_passkey);
  expect([refused.status, refused.body]).toEqual([403, { error: 'current password is required' }]);
  expect((await request('DELETE', path, { current_password: PASSWORD }, by_passkey)).status).toBe(204);
  expect((await request('DELETE', path)).body).toEqual({ error: 'passkey not found' });
  expect((await request('GET', '/api/me')).body.passkeys).toEqual([]);
});

it('returns the right origin in the error for a page of another origin', async () => {
  const start = (path: string, from: string) =>
    fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { origin: from, authorization: `Bearer ${token}` },
    });
  for (const path of ['/api/passkeys/login/start', '/api/passkeys/registration/start']) {
    const answer = await start(path, server.url);
    const error = `passkeys work at ${origin()} only`;
    expect([answer.status, await answer.json()]).toEqual([400, { error }]);
    expect((await start(path, origin())).status).toBe(200);
  }
});

it('rejects a malformed response', async () => {
  const { body } = await request('POST', '/api/passkeys/login/start');
  const device = new Authenticator(origin());
  const response = device.login(body.options);
  const long = { ...response, id: 'a'.repeat(2_000) };
  for (const [given, error] of [
    [{}, 'login_id is required'],
    [{ login_id: body.login_id, response: {} }, 'response.id is required'],
    [{ login_id: body.login_id, response: long }, 'response.id must be at most 1364 characters'],
  ] as const) {
    const answer = await request('POST', '/api/passkeys/login/finish', given);
    expect([answer.status, answer.body]).toEqual([400, { error }]);
  }
});
