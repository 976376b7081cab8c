/** Accounts in the real program, across crashes and with open streams. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Client } from '../src/client/client.ts';
import { longTest } from '../src/testing/long.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
beforeEach(async () => {
  plane = await TestPlane.prepare({ env: { SVC_TEST_TIME_SCALE: '0.2' } });
  await plane.start();
});
afterEach(() => plane.close());

const PASSWORD = 'quite a long password';
const as = (token: string) => new Client({ url: plane.url, token });
const anybody = () => new Client({ url: plane.url, token: null });

async function outcome(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );
}

async function addUser(username: string): Promise<{ id: string; token: string }> {
  const { id } = await plane.client.call('createUser', { body: { username, password: PASSWORD } });
  const { token } = await anybody().call('login', { body: { username, password: PASSWORD } });
  return { id, token };
}

test('exactly one of a hundred concurrent joins succeeds', async () => {
  const path = join(plane.data_dir, 'join.json');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  const { token, pin } = JSON.parse(await readFile(path, 'utf8'));
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      outcome(anybody().call('join', { body: { token, pin, username: `root-${i}`, password: PASSWORD } })),
    ),
  );
  expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
  expect(answers.filter((answer) => answer === 'root already initialized')).toHaveLength(99);
  await expect(stat(path)).rejects.toThrow('ENOENT');
});

test('a user who is renamed keeps their mail and their triggers', async () => {
  await plane.join();
  const { id: user_id, token } = await addUser('alice');
  const spec = { members: [{ member_id: 'outside' }], steps: [{ step_key: 'a', member_id: 'outside' }] };
  const { id: team_id } = await plane.client.call('createTeam', {
    body: { name: 'pair', spec, human_members: ['alice'] },
  });
  const { id: run_id } = await plane.client.call('createRun', { params: { team_id }, body: {} });
  const body = {
    run_id,
    from_actor_id: `user:${ROOT.username}`,
    to_actor_id: 'user:alice',
    payload: { n: 1 },
  };
  await plane.client.call('sendMail', { body });
  const alice = as(token);
  const trigger = await alice.call('setTrigger', {
    params: { actor_id: 'user:alice' },
    body: { run_id, every_seconds: 3600, payload: {} },
  });

  await plane.client.call('updateUser', { params: { user_id }, body: { username: 'alicia' } });
  const params = { actor_id: 'user:alicia' };
  expect(await alice.call('listMail', { params })).toMatchObject([{ payload: { n: 1 } }]);
  expect(await alice.call('listTriggers', { params })).toMatchObject([{ id: trigger.id }]);
  await alice.call('deleteTrigger', { params: { ...params, trigger_id: trigger.id } });
  // The next user of the name gets nothing of it.
  const next = as((await addUser('alice')).token);
  expect(await next.call('listMail', { params: { actor_id: 'user:alice' } })).toEqual([]);
});

longTest('a join challenge and its attempt count survive a crash', async () => {
  const path = join(plane.data_dir, 'join.json');
  const { token, pin } = JSON.parse(await readFile(path, 'utf8'));
  const wrong = pin === '00000000' ? '00000001' : '00000000';
  const attempt = (guess: string) =>
    outcome(anybody().call('join', { body: { token, pin: guess, ...ROOT } }));
  for (let i = 0; i < 4; i++) expect(await attempt(wrong)).toBe('invalid pin');
  await plane.kill();
  await plane.start();
  expect(JSON.parse(await readFile(path, 'utf8')).token).toBe(token);
  expect(await attempt(wrong)).toBe('invalid pin');
  expect(await attempt(pin)).toBe('join token expired');
});

test('tokens, users and the audit log survive a crash, and ended sign-ins stay ended', async () => {
  await plane.join();
  const ada = await addUser('ada');
  const phone = await anybody().call('login', { body: { username: 'ada', password: PASSWORD } });
  await as(phone.token).call('logout');
  const api = await as(ada.token).call('createToken', { body: { name: 'ci' } });
  await plane.kill();
  await plane.start();
  expect((await as(ada.token).call('getMe')).username).toBe('ada');
  expect((await as(api.token).call('getMe')).username).toBe('ada');
  expect(await outcome(as(phone.token).call('getMe'))).toBe('invalid token');
  const records = await plane.client.call('listAudit', { query: { event: 'user_logout' } });
  expect(Array.isArray(records) && records.length).toBe(1);
});

test('an open stream ends soon after its token, and survives a token refresh', async () => {
  await plane.join();
  const change = { current_password: PASSWORD, new_password: 'quite another password' };
  const ways: Record<string, (user: { id: string; token: string }) => Promise<unknown>> = {
    logout: ({ token }) => as(token).call('logout'),
    elsewhere: async ({ token }) => {
      const other = await anybody().call('login', { body: { username: 'elsewhere', password: PASSWORD } });
      await as(other.token).call('changePassword', { body: change });
      expect(await outcome(as(token).call('getMe'))).toBe('invalid token');
    },
    demoted: ({ id }) => plane.client.call('updateUser', { params: { user_id: id }, body: { role: 'root' } }),
    deleted: ({ id }) => plane.client.call('deleteUser', { params: { user_id: id } }),
  };
  const staying = await addUser('staying');
  const stays = readToEnd(await as(staying.token).open('followAll', { query: {} }));
  const fresh = await as(staying.token).call('refreshToken');
  await Promise.all(
    Object.entries(ways).map(async ([name, end]) => {
      const user = await addUser(name);
      const stream = await as(user.token).open('followAll', { query: {} });
      await end(user);
      await readToEnd(stream);
      expect(await outcome(as(user.token).call('getMe'))).toBe('invalid token');
    }),
  );
  const open = Symbol('open');
  expect(await Promise.race([stays, Promise.resolve(open)])).toBe(open);
  await as(fresh.token).call('logout');
  await stays;
});

test('no secret reaches the log, and only the owner can read the key file', async () => {
  await plane.join();
  const ada = await addUser('ada');
  const api = await as(ada.token).call('createToken', { body: { name: 'ci' } });
  await outcome(anybody().call('login', { body: { username: 'ada', password: 'another secret word' } }));
  await outcome(as('svc_not-a-token-but-maybe-nearly-one').call('getMe'));
  await plane.kill('SIGTERM');
  expect(plane.log).toContain('user_login_failed');
  for (const secret of [ada.token, api.token, PASSWORD, ROOT.password, 'another secret word', 'nearly-one'])
    expect(plane.log).not.toContain(secret);
  expect((await stat(join(plane.data_dir, 'secret.key'))).mode & 0o777).toBe(0o600);
});

async function readToEnd(response: Response): Promise<void> {
  try {
    for await (const _ of response.body!);
  } catch {
    // A broken connection also ends the stream.
  }
}
