/** Passkeys against the real program: forged and replayed responses, credentials of others, and changes of passkeys. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import { Authenticator, type Forgery } from '../../src/testing/authenticator.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';
import { type HttpAnswer, sendRequest } from '../../src/testing/send-request.ts';

const PASSWORD = 'quite a long password';
const NOT_ACCEPTED = 'passkey was not accepted';
const NOT_VALID = 'passkey is not valid';

interface Person {
  id: string;
  token: string;
  device: Authenticator;
  passkey_id: string;
}

let plane: TestPlane;
let origin: string;
let victim: Person;
let mallory: Person;
/** Each attempt comes from a different address, so that none is refused because of throttling. */
let addresses = 0;

beforeAll(async () => {
  plane = await TestPlane.open({ env: { SVC_SERVER_BEHIND_PROXY: 'true' } });
  origin = plane.url.replace('127.0.0.1', 'localhost');
  victim = await person('victim');
  mallory = await person('mallory');
});
afterAll(() => plane.close());

const post = (path: string, body?: unknown, token?: string, method = 'POST'): Promise<HttpAnswer> =>
  sendRequest(plane.url, path, {
    ...{ from: `203.0.113.${1 + (addresses++ % 250)}`, method },
    ...(body !== undefined && { body }),
    ...(token !== undefined && { token }),
  });
const parsed = ({ text }: HttpAnswer) => JSON.parse(text);

async function signIn(username: string): Promise<string> {
  return parsed(await post('/api/login', { username, password: PASSWORD })).token;
}

async function person(username: string): Promise<Person> {
  const { id } = await plane.client.call('createUser', { body: { username, password: PASSWORD } });
  const token = await signIn(username);
  const device = new Authenticator(origin);
  const added = await finish(token, device.register(await begin(token)));
  expect(added.status).toBe(201);
  return { id, token, device, passkey_id: parsed(added).id };
}

async function begin(token: string) {
  return parsed(await post('/api/passkeys/registration/start', {}, token)).options;
}
const finish = (token: string, response: unknown) =>
  post('/api/passkeys/registration/finish', { name: 'Key', response }, token);
const startLogin = async () => parsed(await post('/api/passkeys/login/start'));
const finishLogin = (login_id: string, response: unknown) =>
  post('/api/passkeys/login/finish', { login_id, response });

async function login(device: Authenticator, forged: Forgery = {}): Promise<HttpAnswer> {
  const { login_id, options } = await startLogin();
  return finishLogin(login_id, device.login(options, forged));
}

const statusAndError = ({ status, error }: HttpAnswer) => [status, error];
const passkeys = async ({ token }: Person): Promise<string[]> =>
  parsed(await post('/api/me', undefined, token, 'GET')).passkeys.map(({ id }: { id: string }) => id);

async function audit(event: string) {
  const records = await plane.client.call('listAudit', { query: { event } as never });
  return (Array.isArray(records) ? records : records.items) as { user_id: string; details: object }[];
}

test('the victim’s passkey signs the victim in', async () => {
  const answer = await login(victim.device);
  expect([answer.status, parsed(answer).user.id]).toEqual([200, victim.id]);
});

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

test.each<[string, Forgery]>([
  ['from a look-alike origin', { origin: 'http://localhost.evil.example' }],
  ['from the same host at another port', { origin: 'http://localhost:1' }],
  ['for another relying party', { rp_id: 'evil.example' }],
  ['that was made for a registration', { type: 'webauthn.create' }],
  ['for a made-up challenge', { challenge: b64({}) }],
  ['without user presence', { flags: 0b100 }],
  ['without user verification', { flags: 0b001 }],
  ['from a frame in another site', { client: { crossOrigin: true, topOrigin: 'https://evil.example' } }],
  ['signed with another key', { other_key: true }],
  ['without a user handle', { user_handle: null }],
])('a response %s signs nobody in', async (_, forged) => {
  expect(statusAndError(await login(victim.device, forged))).toEqual([401, NOT_ACCEPTED]);
});

test('a recorded response cannot be replayed, with its own challenge or another', async () => {
  const { login_id, options } = await startLogin();
  const recorded = victim.device.login(options);
  expect((await finishLogin(login_id, recorded)).status).toBe(200);
  expect(statusAndError(await finishLogin(login_id, recorded))).toEqual([401, NOT_ACCEPTED]);
  const fresh = await startLogin();
  expect(statusAndError(await finishLogin(fresh.login_id, recorded))).toEqual([401, NOT_ACCEPTED]);
  // A failed attempt uses up its challenge.
  expect(statusAndError(await finishLogin(fresh.login_id, victim.device.login(fresh.options)))).toEqual([
    401,
    NOT_ACCEPTED,
  ]);
});

test('of twenty simultaneous logins with one response, one succeeds', async () => {
  const { login_id, options } = await startLogin();
  const response = victim.device.login(options);
  const answers = await Promise.all(Array.from({ length: 20 }, () => finishLogin(login_id, response)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
});

test('a passkey of one user does not sign in another', async () => {
  const handle = Buffer.from(victim.id).toString('base64url');
  expect(statusAndError(await login(mallory.device, { user_handle: handle }))).toEqual([401, NOT_ACCEPTED]);
  // The victim's credential, signed with Mallory's key.
  const { login_id, options } = await startLogin();
  const response = { ...mallory.device.login(options, { user_handle: handle }), id: victim.device.id };
  expect(statusAndError(await finishLogin(login_id, { ...response, rawId: victim.device.id }))).toEqual([
    401,
    NOT_ACCEPTED,
  ]);
});

test('an unknown passkey gets the same response as a wrong one', async () => {
  const unknown = await login(new Authenticator(origin), { user_handle: 'eA' });
  const wrong = await login(victim.device, { other_key: true });
  expect([unknown.status, unknown.text]).toEqual([wrong.status, wrong.text]);
});

test('a cloned authenticator is refused by its counter, and audited', async () => {
  const device = new Authenticator(origin);
  const token = await signIn('victim');
  expect((await finish(token, device.register(await begin(token)))).status).toBe(201);
  device.counter = 10;
  expect((await login(device)).status).toBe(200);
  for (const counter of [10, 9, 1, 0])
    expect(statusAndError(await login(device, { counter }))).toEqual([401, NOT_ACCEPTED]);
  const entries = await audit('passkey_counter_regressed');
  expect(entries.map(({ user_id }) => user_id)).toEqual(Array(4).fill(victim.id));
  device.counter = 11;
  expect((await login(device)).status).toBe(200);
});

test('a key with an algorithm that was not offered is not registered', async () => {
  const before = await passkeys(mallory);
  for (const device of [
    new Authenticator(origin, 'ES512'),
    ...[0, -36, -65_535].map((claimed) => new Authenticator(origin, 'ES256', claimed)),
  ]) {
    const answer = await finish(mallory.token, device.register(await begin(mallory.token)));
    expect(statusAndError(answer)).toEqual([400, NOT_VALID]);
  }
  expect(await passkeys(mallory)).toEqual(before);
});

test.each([
  ['RS256', -7],
  ['EdDSA', -7],
  ['EdDSA', -257],
  ['ES256', -8],
  ['ES256', -257],
] as const)('a key of %s that claims algorithm %i is not registered', async (real, claimed) => {
  const device = new Authenticator(origin, real, claimed);
  const answer = await finish(mallory.token, device.register(await begin(mallory.token)));
  expect(statusAndError(answer)).toEqual([400, NOT_VALID]);
});

test('a registration works only once, for the sign-in that began it', async () => {
  const options = await begin(victim.token);
  const device = new Authenticator(origin);
  expect((await finish(mallory.token, device.register(options))).status).toBe(409);
  const response = device.register(await begin(victim.token));
  expect((await finish(victim.token, response)).status).toBe(201);
  expect((await finish(victim.token, response)).status).toBe(409);
});

test('registering the victim’s credential again does not take it over', async () => {
  const response = victim.device.register(await begin(mallory.token));
  expect(statusAndError(await finish(mallory.token, response))).toEqual([400, NOT_VALID]);
  // The authenticator stores only its last user, but the credential still belongs to the victim.
  const user_handle = Buffer.from(victim.id).toString('base64url');
  const answer = await login(victim.device, { user_handle });
  expect(parsed(answer).user.id).toBe(victim.id);
});

test('nobody, including root, can see, rename or remove another user’s passkeys', async () => {
  const path = `/api/passkeys/${victim.passkey_id}`;
  const before = await passkeys(victim);
  for (const [token, current_password] of [
    [mallory.token, PASSWORD],
    [plane.token, ROOT.password],
  ] as const) {
    expect(statusAndError(await post(path, { name: 'mine' }, token, 'PATCH'))).toEqual([
      404,
      'passkey not found',
    ]);
    expect(statusAndError(await post(path, { current_password }, token, 'DELETE'))).toEqual([
      404,
      'passkey not found',
    ]);
  }
  expect(await passkeys(victim)).toEqual(before);
});

test('a token without the password can neither add nor remove a passkey', async () => {
  const { token: by_passkey } = parsed(await login(mallory.device));
  const as = new Client({ url: plane.url, token: mallory.token });
  const { token: api } = await as.call('createToken', { body: { name: 'stolen' } });
  const path = `/api/passkeys/${mallory.passkey_id}`;
  for (const token of [by_passkey, api]) {
    for (const body of [{}, { current_password: 'not the password of mallory' }]) {
      const added = await post('/api/passkeys/registration/start', body, token);
      const removed = await post(path, body, token, 'DELETE');
      for (const { status } of [added, removed]) expect([401, 403]).toContain(status);
    }
    // Nor by completing a registration that somebody else began.
    const response = new Authenticator(origin).register(await begin(mallory.token));
    expect([403, 409]).toContain((await finish(token, response)).status);
  }
  expect(await passkeys(mallory)).toEqual([mallory.passkey_id]);
});

test('the last passkey can be removed, and the password still works', async () => {
  const path = `/api/passkeys/${mallory.passkey_id}`;
  expect((await post(path, { current_password: PASSWORD }, mallory.token, 'DELETE')).status).toBe(204);
  expect(statusAndError(await login(mallory.device))).toEqual([401, NOT_ACCEPTED]);
  expect((await post('/api/login', { username: 'mallory', password: PASSWORD })).status).toBe(200);
});
