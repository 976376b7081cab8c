/**
 * Sign-ins and their tokens: refreshed after their end, raced against their end, extended beyond their lifetime, and taken
 * from a stolen database, a URL or a log.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../../src/client/client.ts';
import { DATABASE_FILE } from '../../src/main/data-dir.ts';
import { ROOT, TestPlane } from '../../src/testing/plane.ts';
import { sendRequest } from '../../src/testing/send-request.ts';

const PASSWORD = 'quite a long password';
const INVALID = 'invalid token';

let plane: TestPlane;
/** Believes the addresses that a proxy names, so that requests can have several. */
let behind_proxy: TestPlane;
beforeAll(async () => {
  const env = { SVC_SERVER_BEHIND_PROXY: 'true' };
  [plane, behind_proxy] = await Promise.all([TestPlane.open(), TestPlane.open({ env })]);
});
afterAll(() => Promise.all([plane.close(), behind_proxy.close()]));

let users = 0;
async function newUser(at = plane): Promise<{ id: string; username: string }> {
  const body = { username: `user${++users}`, password: PASSWORD };
  return at.client.call('createUser', { body });
}
const signIn = async (username: string, password = PASSWORD): Promise<string> =>
  (await new Client({ url: plane.url }).call('login', { body: { username, password } })).token;
const as = (token: string) => new Client({ url: plane.url, token });
const refresh = async (token: string) => (await as(token).call('refreshToken')).token;
const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'ok',
    (error: Error) => error.message,
  );
const works = (token: string) => outcome(as(token).call('getMe'));

test.each<[string, (user: { id: string; username: string }, token: string) => Promise<unknown>]>([
  ['a logout', (_, token) => as(token).call('logout')],
  ['a refresh', (_, token) => refresh(token)],
  [
    'a change of the password',
    async ({ username }) => {
      const body = { current_password: PASSWORD, new_password: 'quite another password' };
      await as(await signIn(username)).call('changePassword', { body });
    },
  ],
  [
    'a password that root sets',
    ({ id }) =>
      plane.client.call('updateUser', {
        params: { user_id: id },
        body: { password: 'quite another password' },
      }),
  ],
  [
    'a change of the role',
    ({ id }) => plane.client.call('updateUser', { params: { user_id: id }, body: { role: 'root' } }),
  ],
  ['the deletion of the user', ({ id }) => plane.client.call('deleteUser', { params: { user_id: id } })],
])('a token that was ended by %s can be neither used nor refreshed', async (_, end) => {
  const user = await newUser();
  const first = await signIn(user.username);
  const token = await refresh(first);
  await end(user, token);
  for (const one of [first, token]) {
    for (const operation of ['getMe', 'refreshToken', 'logout', 'listSignIns'] as const)
      expect(await outcome(as(one).call(operation))).toBe(INVALID);
  }
});

test('after a race of refreshes and a logout, no token outlives the logout', async () => {
  const { username } = await newUser();
  for (let round = 0; round < 10; round++) {
    const token = await signIn(username);
    const racers = Array.from({ length: 8 }, () =>
      as(token)
        .call('refreshToken')
        .catch(() => null),
    );
    const ended = outcome(as(token).call('logout'));
    const won = (await Promise.all(racers)).flatMap((fresh) => (fresh === null ? [] : [fresh.token]));
    expect(won.length).toBeLessThanOrEqual(1);
    // A successful logout ends the token. If a refresh came first, the logout is rejected.
    const logout_result = await ended;
    expect(await works(token)).toBe(INVALID);
    for (const fresh of won) expect(await works(fresh)).toBe(logout_result === 'ok' ? INVALID : 'ok');
  }
});

test('of simultaneous refreshes with one token, one succeeds', async () => {
  const { username } = await newUser();
  const token = await signIn(username);
  const tries = await Promise.all(Array.from({ length: 20 }, () => outcome(as(token).call('refreshToken'))));
  expect(tries.filter((result) => result === 'ok')).toHaveLength(1);
  expect(tries.filter((result) => result === INVALID)).toHaveLength(19);
});

/** Stops the service, changes its database, and starts it again. */
async function afterwards(sql: string, ...values: (string | number)[]): Promise<void> {
  await plane.kill('SIGTERM');
  const database = new DatabaseSync(join(plane.data_dir, DATABASE_FILE));
  database.prepare(sql).run(...values);
  database.close();
  await plane.start();
}

test('no chain of refreshes extends a sign-in beyond its absolute lifetime', async () => {
  const { id, username } = await newUser();
  let token = await signIn(username);
  const soon_ms = Date.now() + 600_000;
  await afterwards('UPDATE tokens SET expires_at = ? WHERE user_id = ?', soon_ms, id);
  for (let i = 0; i < 5; i++) {
    const fresh = await as(token).call('refreshToken');
    expect(fresh.expires_in).toBeLessThanOrEqual(600);
    token = fresh.token;
  }
  await afterwards('UPDATE tokens SET expires_at = ? WHERE user_id = ?', Date.now() - 1, id);
  expect(await outcome(as(token).call('refreshToken'))).toBe(INVALID);
  expect(await works(token)).toBe(INVALID);
});

test('an idle sign-in expires, and a refresh does not revive it', async () => {
  const { id, username } = await newUser();
  const token = await signIn(username);
  await afterwards('UPDATE tokens SET idle_expires_at = ? WHERE user_id = ?', Date.now() - 1, id);
  expect(await outcome(as(token).call('refreshToken'))).toBe(INVALID);
});

test('an API token is not refreshed, and cannot end or list the sign-ins of others', async () => {
  const [{ username }, other] = [await newUser(), await newUser()];
  const { token } = await as(await signIn(username)).call('createToken', { body: { name: 'ci' } });
  expect(await outcome(as(token).call('refreshToken'))).toBe('not allowed');
  const other_token = await signIn(other.username);
  const [sign_in] = (await as(other_token).call('listSignIns')) as unknown as { id: string }[];
  const params = { sign_in_id: sign_in!.id };
  expect(await outcome(as(token).call('endSignIn', { params }))).not.toBe('ok');
  expect(await works(other_token)).toBe('ok');
});

test('nothing in the data directory can be used as a token, a PIN or a password', async () => {
  const { username } = await newUser();
  const session = await signIn(username);
  const { token: api } = await as(session).call('createToken', { body: { name: 'ci' } });
  await plane.kill('SIGTERM');
  const files = readdirSync(plane.data_dir, { recursive: true, withFileTypes: true }).filter((one) =>
    one.isFile(),
  );
  const content = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name)));
  for (const secret of [session, api, plane.token, PASSWORD, ROOT.password]) {
    for (const form of [
      secret,
      secret.replace('svc_', ''),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
    ])
      expect(files.filter((_, at) => content[at]!.includes(form)).map(({ name }) => name)).toEqual([]);
  }
  const database = new DatabaseSync(join(plane.data_dir, DATABASE_FILE), { readOnly: true });
  const tokens = database.prepare('SELECT id, hash FROM tokens').all() as { id: string; hash: Uint8Array }[];
  const users = database.prepare('SELECT id, password_hash FROM users').all() as {
    id: string;
    password_hash: string;
  }[];
  database.close();
  await plane.start();
  for (const { id, hash } of tokens) {
    for (const form of [id, Buffer.from(hash).toString('base64url'), Buffer.from(hash).toString('hex')]) {
      expect(await works(form)).toBe(INVALID);
      expect(await works(`svc_${form}`)).toBe(INVALID);
    }
  }
  const { status } = await sendRequest(plane.url, '/api/login', {
    body: { username: ROOT.username, password: users[0]!.password_hash.slice(0, 200) },
  });
  expect(status).toBe(401);
});

test('a token is accepted only in the header, and is never logged', async () => {
  const { username } = await newUser();
  const token = await signIn(username);
  const from = plane.log.length;
  const attempts: [path: string, headers: Record<string, string>][] = [
    ...['token', 'access_token', 'authorization', 'bearer', 'key', 't'].map(
      (name): (typeof attempts)[number] => [`/api/me?${name}=${token}`, {}],
    ),
    [`/api/me/${token}`, {}],
    [`/${token}`, {}],
    [`/api/events?token=${token}`, {}],
    ['/api/me', { cookie: `token=${token}; svc=${token}; session=${token}` }],
    ['/api/me', { authorization: `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}` }],
    ['/api/me', { authorization: `Basic ${Buffer.from(`${username}:${PASSWORD}`).toString('base64')}` }],
    ['/api/me', { 'x-api-key': token, 'x-auth-token': token, 'proxy-authorization': `Bearer ${token}` }],
    ['/api/me', { authorization: token }],
    ['/api/me', { authorization: `Bearer ${token},${token}` }],
    ['/api/me', { authorization: `Bearer  ${token} x` }],
    [
      '/api/me',
      { 'sec-websocket-protocol': `bearer, ${token}`, upgrade: 'websocket', connection: 'upgrade' },
    ],
  ];
  for (const [path, headers] of attempts) {
    const { status, text } = await sendRequest(plane.url, path, { method: 'GET', headers });
    expect([path.replace(token, 'TOKEN'), [400, 401, 404].includes(status)]).toEqual([
      path.replace(token, 'TOKEN'),
      true,
    ]);
    expect(text).not.toContain(token);
  }
  expect(plane.log.slice(from)).not.toContain(token.slice(4));
  expect(await works(token)).toBe('ok');
});

// --- guessing -----------------------------------------------------------------------------------------------------------

const attempt = (
  at: TestPlane,
  username: string,
  password: string,
  more: { from?: string; headers?: Record<string, string> } = {},
) => sendRequest(at.url, '/api/login', { ...more, body: { username, password } });
const guess = (username: string, from: string) =>
  attempt(behind_proxy, username, 'not the password', { from });

test('guessing is throttled whatever forwarded address is claimed', async () => {
  const { username } = await newUser();
  const statuses: number[] = [];
  for (let i = 0; i < 8; i++) {
    const ip = `203.0.113.${i}`;
    const headers = {
      ...{ 'x-forwarded-for': ip, 'x-real-ip': ip, 'true-client-ip': ip, 'cf-connecting-ip': ip },
      ...{ forwarded: `for=${ip}`, 'x-client-ip': ip, via: ip },
    };
    statuses.push((await attempt(plane, username, 'not the password', { headers })).status);
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429]);
});

test('guessing is throttled however the name is written, and the owner can sign in elsewhere', async () => {
  const { username } = await newUser(behind_proxy);
  const signInFrom = async (from: string) =>
    (await attempt(behind_proxy, username, PASSWORD, { from })).status;
  expect(await signInFrom('203.0.113.1')).toBe(200);
  const written = [
    username,
    username.toUpperCase(),
    ` ${username}`,
    `${username} `,
    `${username}\0`,
    `${username}\u200b`,
  ];
  for (let i = 0; i < 30; i++) await guess(written[i % written.length]!, '203.0.113.2');
  expect(await signInFrom('203.0.113.2')).toBe(429);
  expect(await signInFrom('203.0.113.1')).toBe(200);
});

test('an agent of this machine cannot keep people of this machine from signing in', async () => {
  const { username } = await newUser();
  await signIn(username);
  // The agent uses every loopback address. Its attempts count together, up to 20 in a minute.
  const statuses: number[] = [];
  for (let i = 0; i < 40; i++) {
    const socket = { localAddress: `127.${i}.7.1` };
    statuses.push(await loginStatus(socket, `nobody${i}`, 'not the password'));
  }
  expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(20);
  expect(statuses.slice(20)).toEqual(Array(20).fill(429));
  // Requests without a token do not count for sign-ins, nor do sign-ins of others.
  await Promise.all(Array.from({ length: 200 }, () => fetch(`${plane.url}/api/me`)));
  await Promise.all(Array.from({ length: 200 }, (_, i) => attempt(plane, `flood${i}`, 'x')));
  expect((await attempt(plane, username, PASSWORD)).status).toBe(200);
});

/** The status of a sign-in over a connection from another address of this machine. */
function loginStatus(socket: { localAddress: string }, username: string, password: string): Promise<number> {
  const body = JSON.stringify({ username, password });
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const outgoing = request(`${plane.url}/api/login`, { ...socket, method: 'POST', agent: false, headers });
    outgoing.on('response', (response) => resolve(response.resume().statusCode!));
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Clock ticks that the service has used so far. */
function work(): number {
  const fields = readFileSync(`/proc/${behind_proxy.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

test.runIf(process.platform === 'linux')(
  'a login of an unknown user takes as much work as that of a known one',
  async () => {
    const names = await Promise.all(Array.from({ length: 4 }, () => newUser(behind_proxy)));
    const costs: number[] = [];
    for (const kind of ['known', 'unknown']) {
      const before = work();
      for (let i = 0; i < 15; i++) {
        const { username } = names[i % names.length]!;
        const from = `10.0.${kind === 'known' ? 7 : 8}.${1 + i}`;
        const { status } = await guess(kind === 'known' ? username : `no-${username}`, from);
        expect(status).toBe(401);
      }
      costs.push(work() - before);
    }
    // Without hashing, it would be a small fraction.
    expect(costs[1]!).toBeGreaterThan(costs[0]! / 2);
  },
);

test('responses do not reveal whether a user exists', async () => {
  const { username } = await newUser(behind_proxy);
  const [known, unknown] = [await guess(username, '10.0.9.1'), await guess(`no-${username}`, '10.0.9.2')];
  expect([known.status, known.text]).toEqual([unknown.status, unknown.text]);
});
