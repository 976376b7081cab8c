/** Notifications from the real program to a push service on loopback: encryption, recipients, and delivery after a crash. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Client } from '../src/client/client.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { ROOT, SVC, TestPlane } from '../src/testing/plane.ts';
import { PushService, type TestDevice } from '../src/testing/push-service.ts';

const PASSWORD = 'another correct horse';
let service: PushService;
let plane: TestPlane;
let ada: Client;
beforeAll(async () => {
  service = await PushService.open();
  const env = { SVC_PUSH_ORIGINS: service.origin, SVC_PUSH_SUBJECT: 'mailto:ops@example.org' };
  plane = await TestPlane.open({ env });
  await plane.client.call('createUser', { body: { username: 'ada', password: PASSWORD } });
  ada = await signedIn('ada', PASSWORD);
});
afterEach(() => {
  expect(service.faults).toEqual([]);
});
afterAll(async () => {
  await plane.close();
  await service.close();
});

async function signedIn(username: string, password: string): Promise<Client> {
  const { token } = await plane.client.call('login', { body: { username, password } });
  return new Client({ url: plane.url, token });
}

async function subscribe(client: Client, more: { with_commands?: boolean } = {}): Promise<TestDevice> {
  const device = service.device();
  const { public_key } = await client.call('getPushKey');
  device.public_key = public_key;
  const body = { endpoint: device.endpoint, keys: device.keys, public_key, ...more };
  await client.call('createPushSubscription', { body });
  return device;
}

const devicesOf = (client: Client) => client.call('listPushSubscriptions') as Promise<object[]>;

test('a review notifies only its owner’s devices, without the command by default, and its answer closes the notification', async () => {
  const [phone, open, roots] = [
    await subscribe(ada),
    await subscribe(ada, { with_commands: true }),
    await subscribe(plane.client),
  ];
  const argv = [SVC, 'demo-agent', '--speed', '0', '--state', join(plane.folder, 'demo')];
  const conversation = await Conversation.start(plane, argv, { prompt: 'Write a note', client: ada });
  const [review] = await conversation.pending();
  const path = `/approvals?review=${review!.id}`;
  expect(await phone.untilMessages(1)).toMatchObject({
    kind: 'review',
    title: 'talks needs you',
    path,
    waiting: 1,
  });
  const title = String(review!.tool_call.title);
  expect((await open.untilMessages(1)).body).toContain(title);
  expect(JSON.stringify(phone.messages)).not.toContain(title);
  expect(JSON.stringify([...phone.messages, ...open.messages])).not.toMatch(/svc_|token|bearer/i);
  await conversation.respond(review!.id, { decision: 'allow' });
  expect(await phone.untilMessages(2)).toMatchObject({
    kind: 'closed',
    body: `Answered by ${ROOT.username}`,
    path,
  });
  await conversation.close();
  // Root's own device works, but received none of the above.
  const failed = await plane.agent('exit 3', { name: 'breaks' });
  expect(await roots.untilMessages(1)).toMatchObject({
    title: 'breaks failed',
    path: `/agents/${failed.id}`,
  });
  const spec = { members: [{ member_id: 'm' }], steps: [{ step_key: 'a' }] };
  const team = await ada.call('createTeam', { body: { name: 'crew', spec } });
  const run = await ada.call('createRun', { params: { team_id: team.id } });
  await ada.call('cancelRun', { params: { team_id: team.id, run_id: run.id } });
  expect(await phone.untilMessages(3)).toMatchObject({
    ...{ kind: 'run_ended', title: 'crew: run 1 cancelled' },
    path: `/teams/${team.id}/runs/${run.id}`,
  });
  expect(roots.request_count).toBe(1);
});

test('a plane that is killed while it sends a notification sends it once after the restart', async () => {
  const device = await subscribe(plane.client);
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  device.answers.push({ status: 503, after: held });
  await plane.agent('exit 4', { name: 'crashes' });
  await device.untilRequests(1);
  await plane.kill();
  release();
  await plane.start();
  expect(await device.untilMessages(1)).toMatchObject({ title: 'crashes failed', body: 'exit code 4' });
  await plane.client.call('testPush', { body: {} });
  expect(device.messages.map(({ kind }) => kind)).toEqual(['agent_failed', 'test']);
});

test('a device gets no notifications after its sign-in ends', async () => {
  const client = await signedIn(ROOT.username, ROOT.password);
  const device = await subscribe(client);
  const others = (await devicesOf(plane.client)).length - 1;
  await client.call('logout');
  expect(await devicesOf(plane.client)).toHaveLength(others);
  const witness = await subscribe(plane.client);
  await plane.agent('exit 5');
  await witness.untilMessages(1);
  expect(device.request_count).toBe(0);
});

test('the private key is in no response, endpoints are not logged, and changes are audited', async () => {
  const { public_key } = await plane.client.call('rotatePushKeys');
  expect(await plane.client.call('getPushKey')).toEqual({ public_key });
  await expect(ada.call('rotatePushKeys')).rejects.toThrow('root required');
  const { status } = await fetch(`${plane.url}/api/push/key`);
  expect(status).toBe(401);
  const page = (await plane.client.call('listAudit', { query: { limit: 200 } })) as {
    items: { event: string }[];
  };
  const events = new Set(page.items.map(({ event }) => event));
  expect([...events]).toEqual(
    expect.arrayContaining(['push_subscribed', 'push_tested', 'push_keys_rotated']),
  );
  expect(plane.log).not.toMatch(/\/push\/\d+-/);
});
