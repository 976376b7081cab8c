/**
 * Notifications in a real browser, from start to finish: turning them on in the settings, a review as the push service
 * receives it and the service worker shows it, a tap on it, and the answer. Browsers in tests cannot reach a push service,
 * so the tests have their own: `subscribe` returns one of its devices, and its messages are handed to the service worker.
 */
import { join } from 'node:path';
import type { CDPSession, Page, Worker } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { PushMessage } from '../src/features/notifications/rules.ts';
import { fullBrowserTest, longFullBrowserTest, sharedBrowser, signIn } from '../src/testing/browser.ts';
import { Conversation } from '../src/testing/conversation.ts';
import { ROOT, SVC, TestPlane } from '../src/testing/plane.ts';
import { PushService, type TestDevice } from '../src/testing/push-service.ts';

const SOON = { timeout: 30_000 };
let service: PushService;
let plane: TestPlane;
const browser = sharedBrowser({ full: true });
beforeAll(async () => {
  service = await PushService.open();
  plane = await TestPlane.open({ env: { SVC_PUSH_ORIGINS: service.origin } });
});
afterEach(async () => {
  expect(service.faults).toEqual([]);
});
afterAll(async () => {
  await plane.close();
  await service.close();
});

/** Each call of `subscribe` uses the next of these devices, with the key from the page. */
const SUBSCRIBES = `
  const all = DEVICES;
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0)).buffer;
  const read = () => JSON.parse(localStorage.getItem('test.push') ?? '{"made":0}');
  const write = (state) => localStorage.setItem('test.push', JSON.stringify(state));
  const shape = ({ made, key }) => ({
    endpoint: all[made - 1].endpoint,
    options: { userVisibleOnly: true, applicationServerKey: bytes(key) },
    toJSON: () => ({ ...all[made - 1], expirationTime: null }),
    unsubscribe: async () => { write({ made }); return true; },
  });
  PushManager.prototype.getSubscription = async () => (read().key ? shape(read()) : null);
  PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
    const state = read();
    if (!state.key) write({ made: state.made + 1, key: applicationServerKey });
    return shape(read());
  };
`;

interface Phone {
  page: Page;
  devices: TestDevice[];
}

/** A signed-in phone at the notification settings. */
async function phone(token = plane.token, screen: 'desk' | 'phone' = 'desk'): Promise<Phone> {
  const devices = [service.device(), service.device()];
  const { page } = await browser.open(plane, { service_worker: true, screen });
  await page.context().grantPermissions(['notifications'], { origin: plane.url });
  const subscriptions = devices.map(({ endpoint, keys }) => ({ endpoint, keys }));
  await page.context().addInitScript(`{${SUBSCRIBES.replace('DEVICES', JSON.stringify(subscriptions))}}`);
  await signIn(page, plane, { token });
  await page.goto(`${plane.url}/settings/notifications`);
  return { page, devices };
}

async function turnOn({ page, devices }: Phone): Promise<TestDevice> {
  await page.getByRole('button', { name: 'Turn on notifications' }).click();
  await page.getByLabel('An agent needs you').waitFor();
  const { key } = JSON.parse((await page.evaluate("localStorage.getItem('test.push')")) as string);
  devices[0]!.public_key = key;
  return devices[0]!;
}

/**
 * Delivers a message of the push service to the page's service worker. Sends it again if the worker does not receive it,
 * because Chromium sometimes drops a DevTools message without an error, and a push service may repeat one too.
 */
async function deliver(cdp: CDPSession, worker: Worker, message: PushMessage): Promise<void> {
  const registration = new Promise<string>((resolve) => {
    cdp.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const one = registrations.find(
        ({ scopeURL, isDeleted }) => !isDeleted && scopeURL.startsWith(plane.url),
      );
      if (one) resolve(one.registrationId);
    });
  });
  const received = () => worker.evaluate(COUNT_PUSHES) as Promise<number>;
  const before = await received();
  await cdp.send('ServiceWorker.enable');
  const registrationId = await registration;
  const data = JSON.stringify(message);
  for (let waited_ms = 0; (await received()) === before; waited_ms += 100) {
    if (waited_ms % 5_000 === 0) {
      await cdp.send('ServiceWorker.deliverPushMessage', { origin: plane.url, registrationId, data });
    }
    await sleep(100);
  }
  await cdp.send('ServiceWorker.disable');
}

/** In the worker: the number of messages that it received since this was evaluated first. */
const COUNT_PUSHES = `self.test_pushes ??= (addEventListener('push', () => { self.test_pushes++; }), 0)`;

/** The notifications on the screen, as the service worker knows them. */
const shown = (worker: Worker) =>
  worker.evaluate(`registration.getNotifications().then((all) =>
    all.map(({ title, body, tag, silent, data }) => ({ title, body, tag, silent, path: data.path })))`) as Promise<
    { title: string; body: string; tag: string; path: string; silent: boolean }[]
  >;

/** Taps a notification. Events from scripts do not keep a worker alive, so this waits for what the handler waits for. */
const tap = (worker: Worker, tag: string) =>
  worker.evaluate(`registration.getNotifications({ tag: '${tag}' }).then(async ([notification]) => {
    const event = new NotificationEvent('notificationclick', { notification });
    let until;
    event.waitUntil = (promise) => { until = promise; };
    self.dispatchEvent(event);
    await until;
  })`);

async function workerOf(page: Page): Promise<Worker> {
  const context = page.context();
  return context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker'));
}

function startDemoConversation(): Promise<Conversation> {
  const argv = [SVC, 'demo-agent', '--speed', '0', '--state', join(plane.folder, 'demo')];
  return Conversation.start(plane, argv, { prompt: 'Write a note' });
}

fullBrowserTest('a review of an agent appears on the phone, and a tap opens it', async () => {
  const my_phone = await phone();
  const { page } = my_phone;
  const device = await turnOn(my_phone);
  await page.getByRole('button', { name: 'Send test' }).click();
  await page.getByText('Test sent.').waitFor();
  expect(await device.untilMessages(1)).toMatchObject({ kind: 'test' });

  const conversation = await startDemoConversation();
  const message = await device.untilMessages(2);
  const [review] = await conversation.pending();
  expect(message).toMatchObject({ title: 'talks needs you', path: `/approvals?review=${review!.id}` });
  const cdp = await page.context().newCDPSession(page);
  const worker = await workerOf(page);
  await deliver(cdp, worker, message);
  const { title, body, tag, path } = message;
  await expect.poll(() => shown(worker), SOON).toMatchObject([{ title, body, tag, path, silent: false }]);

  await tap(worker, tag);
  await page.waitForURL(`${plane.url}${path}`);
  await expect.poll(() => shown(worker)).toEqual([]);
  const card = page.getByRole('list', { name: 'Waiting' }).getByRole('article');
  expect(await card.getAttribute('data-review')).toBe(review!.id);
  await card
    .getByRole('button', { name: /^Allow/ })
    .first()
    .click();
  await expect.poll(async () => (await conversation.reviews())[0]!.status, SOON).toBe('answered');
  expect(await device.untilMessages(3)).toMatchObject({ kind: 'closed', tag });
  await conversation.close();
});

fullBrowserTest('a permission takes two taps: the notification and the answer', async () => {
  const my_phone = await phone(plane.token, 'phone');
  const { page } = my_phone;
  const device = await turnOn(my_phone);
  const worker = await workerOf(page);
  const cdp = await page.context().newCDPSession(page);
  const conversation = await startDemoConversation();
  const message = await device.untilMessages(1);
  await page.goto(`${plane.url}/agents`);
  await deliver(cdp, worker, message);
  await expect.poll(() => shown(worker), SOON).toMatchObject([{ tag: message.tag }]);

  await tap(worker, message.tag);
  await page.waitForURL(`${plane.url}${message.path}`);
  const options = page.getByRole('article').getByRole('button', { name: /^(Allow|Reject)/ });
  await options.first().waitFor();
  for (const [width, height] of [
    [390, 844],
    [360, 740],
    [844, 390],
    [740, 360],
  ] as const) {
    await page.setViewportSize({ width, height });
    const boxes = () => options.evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
    for (const { left, right, top, bottom } of await boxes()) {
      expect([left >= 0, right <= width, top >= 0, bottom <= height]).toEqual([true, true, true, true]);
      expect(bottom - top).toBeGreaterThanOrEqual(48);
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  // A request that has just appeared cannot be answered.
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 450))');
  await options.first().tap();
  await expect.poll(async () => (await conversation.reviews())[0]!.status, SOON).toBe('answered');
  await page.getByRole('link', { name: 'Done, back to talks' }).waitFor();
  await conversation.close();
});

longFullBrowserTest('an answer from elsewhere replaces the notification silently', async () => {
  const my_phone = await phone();
  const { page } = my_phone;
  const device = await turnOn(my_phone);
  const worker = await workerOf(page);
  const cdp = await page.context().newCDPSession(page);
  const conversation = await startDemoConversation();
  const message = await device.untilMessages(1);
  // No page of the service is open.
  await page.goto('about:blank');
  await deliver(cdp, worker, message);
  await expect.poll(() => shown(worker), SOON).toMatchObject([{ body: message.body }]);
  await conversation.respond(message.path.split('=')[1]!, { decision: 'allow' });
  await deliver(cdp, worker, await device.untilMessages(2));
  await expect
    .poll(() => shown(worker), SOON)
    .toMatchObject([{ tag: message.tag, body: 'Answered by ana', silent: true }]);
  await conversation.close();
});

longFullBrowserTest(
  'a device chooses its notifications, and subscribes again after a key rotation',
  async () => {
    const my_phone = await phone();
    const { page, devices } = my_phone;
    const first = await turnOn(my_phone);
    const list = () => plane.client.call('listPushSubscriptions') as Promise<object[]>;
    const here = async () =>
      (await list()).find((one) =>
        devices.some((each) => each.fingerprint === (one as TestDevice).fingerprint),
      );
    await page.getByLabel('An agent failed').uncheck();
    await expect.poll(here, SOON).toMatchObject({ kinds: ['review', 'run_ended'], with_commands: false });
    await page.getByLabel('Include what the agent wants to do').check();
    await expect.poll(here, SOON).toMatchObject({ kinds: ['review', 'run_ended'], with_commands: true });

    await page.getByRole('button', { name: 'Rotate keys…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate keys' }).click();
    await page.getByText('Keys rotated.').waitFor();
    expect(await here()).toMatchObject({ fingerprint: first.fingerprint, status: 'expired' });
    await page.goto(`${plane.url}/agents`);
    await expect.poll(here, SOON).toMatchObject({
      ...{ fingerprint: devices[1]!.fingerprint, status: 'active' },
      ...{ kinds: ['review', 'run_ended'], with_commands: true },
    });
    devices[1]!.public_key = (await plane.client.call('getPushKey')).public_key;
    await plane.client.call('testPush', { body: {} });
    await devices[1]!.untilMessages(1);
    expect(first.messages).toEqual([]);
  },
);

fullBrowserTest(
  'signing out closes notifications, and removes the subscription from the browser and from the service',
  async () => {
    const { token } = await plane.client.call('login', { body: ROOT });
    const my_phone = await phone(token);
    const { page } = my_phone;
    const device = await turnOn(my_phone);
    const { fingerprint } = device;
    const known = async () =>
      ((await plane.client.call('listPushSubscriptions')) as unknown as TestDevice[]).some(
        (one) => one.fingerprint === fingerprint,
      );
    const kept = () => page.evaluate("JSON.parse(localStorage.getItem('test.push')).key ?? null");
    expect([await known(), typeof (await kept())]).toEqual([true, 'string']);
    await page.getByRole('button', { name: 'Send test' }).click();
    const worker = await workerOf(page);
    await deliver(await page.context().newCDPSession(page), worker, await device.untilMessages(1));
    await expect.poll(() => shown(worker), SOON).toMatchObject([{ tag: 'test' }]);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').waitFor();
    await expect.poll(kept, SOON).toBe(null);
    await expect.poll(known, SOON).toBe(false);
    await expect.poll(() => shown(worker), SOON).toEqual([]);
  },
);

longFullBrowserTest('a device that cannot get notifications shows the reason and what to do', async () => {
  const cases: [script: string, said: string][] = [
    [
      "Object.defineProperty(window, 'isSecureContext', { value: false })",
      'Notifications need a secure connection.',
    ],
    [
      "Object.defineProperty(Notification, 'permission', { get: () => 'denied' })",
      'Notifications from this page are blocked.',
    ],
    ['delete window.PushManager', 'This browser cannot show notifications.'],
    [
      "Object.defineProperty(Navigator.prototype, 'userAgent', { get: () => 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Safari/604.1' })",
      'Add this page to the home screen first.',
    ],
  ];
  const { page: first } = await browser.open(plane);
  await signIn(first, plane);
  for (const [script, said] of cases) {
    const page = await first.context().newPage();
    await page.addInitScript(script);
    await page.goto(`${plane.url}/settings/notifications`);
    await page.getByText(said).waitFor();
    expect(await page.getByRole('button', { name: 'Turn on notifications' }).count()).toBe(0);
  }
});
