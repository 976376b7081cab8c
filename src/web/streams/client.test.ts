import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeStreams } from '../../testing/fake-streams.ts';
import { type AgentNews, StreamClient } from './client.ts';
import { StreamHub } from './hub.ts';
import type { ToClient, ToHub } from './messages.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms = 100) => vi.advanceTimersByTimeAsync(ms);

/** A page with its own hub; each new connection is to a new hub. */
function open({ is_online = true, is_visible = true } = {}) {
  const plane = new FakeStreams(['a', 'b']);
  const page = new StreamClient({
    token: 't',
    is_online,
    is_visible,
    connectToHub: (receive) => {
      const hub = new StreamHub({ url: 'http://127.0.0.1', fetch: plane.fetch });
      const handle = hub.join((message) => queueMicrotask(() => receive(message)));
      return { post: (message) => handle.receive(message), close: () => handle.leave() };
    },
  });
  const texts = [page.state.getSnapshot().text];
  page.state.subscribe(() => {
    const { text } = page.state.getSnapshot();
    if (text !== texts.at(-1)) texts.push(text);
  });
  return { plane, page, texts };
}

/** Watches an agent and records the numbers of its events, and other news by type. */
function note(page: StreamClient, agent_id: string) {
  const seen: (number | string)[] = [];
  const off = page.watchAgent(agent_id, { after: null }, (news: AgentNews) => {
    if (news.type === 'events') seen.push(...news.frames.map(({ id }) => Number(id)));
    else seen.push(news.type);
  });
  return { seen, off };
}

describe('the badge', () => {
  test('follows the stream of the selected agent', async () => {
    const { plane, page, texts } = open();
    const { off } = note(page, 'a');
    await pass();
    plane.cut();
    await pass(1_100);
    off();
    expect(texts).toEqual([
      'Online · SSE idle',
      'Online · SSE connecting',
      'Online · SSE connected',
      'Online · SSE reconnecting',
      'Online · SSE connected',
      'Online · SSE idle',
    ]);
  });

  test('is disconnected while the browser is offline, and reconnects afterwards', async () => {
    const { page, texts } = open();
    note(page, 'a');
    await pass();
    page.setOnline(false);
    await pass();
    page.setOnline(true);
    await pass(1_100);
    expect(texts.slice(2)).toEqual([
      'Online · SSE connected',
      'Offline · SSE disconnected',
      'Online · SSE reconnecting',
      'Online · SSE connected',
    ]);
  });

  test('a page that opens offline is disconnected until the browser is online', async () => {
    const { page, texts } = open({ is_online: false });
    await pass();
    page.setOnline(true);
    expect(texts).toEqual(['Offline · SSE disconnected', 'Online · SSE idle']);
  });

  test('a connection that is silent for 75 seconds is reconnecting', async () => {
    const { page, texts } = open();
    note(page, 'a');
    await pass(74_000);
    expect(texts.at(-1)).toBe('Online · SSE connected');
    await pass(1_200);
    expect(texts.at(-1)).toBe('Online · SSE reconnecting');
    await pass(1_000);
    expect(texts.at(-1)).toBe('Online · SSE connected');
  });

  test('offers a refresh after 60 seconds of reconnecting', async () => {
    const { plane, page } = open();
    note(page, 'a');
    await pass();
    plane.is_down = true;
    plane.cut();
    await pass(59_000);
    expect(page.state.getSnapshot()).toMatchObject({ badge: 'reconnecting', offer_refresh: false });
    expect(page.state.getSnapshot().next_attempt_at).toBeGreaterThan(Date.now());
    await pass(1_100);
    expect(page.state.getSnapshot()).toMatchObject({ badge: 'reconnecting', offer_refresh: true });
    plane.is_down = false;
    page.reconnect();
    await pass(1_100);
    expect(page.state.getSnapshot()).toMatchObject({ badge: 'connected', offer_refresh: false });
  });

  test('shows the latest subscription, then the one before it', async () => {
    const { page, texts } = open();
    note(page, 'a');
    await pass();
    const { off } = note(page, 'b');
    await pass();
    off();
    const { off: offGone } = note(page, 'x');
    await pass();
    offGone();
    expect(texts.slice(1)).toEqual([
      'Online · SSE connecting',
      'Online · SSE connected',
      'Online · SSE connecting',
      'Online · SSE connected',
      'Online · SSE connecting',
      'Online · SSE connected',
    ]);
  });
});

describe('retry delays', () => {
  const cases: [string, (page: StreamClient) => void][] = [
    ['online again', (page) => page.setOnline(true)],
    ['shown again', (page) => page.setVisible(true)],
  ];
  test.each(cases)('restart at one second when the page is %s', async (_, come) => {
    const { plane, page } = open();
    plane.is_down = true;
    const { seen } = note(page, 'a');
    plane.append('a', 1);
    await pass(16_000);
    plane.is_down = false;
    come(page);
    await pass(990);
    expect(seen).toEqual([]);
    await pass(30);
    expect(seen).toEqual([1]);
  });
});

describe('after the machine was asleep', () => {
  // Timers stop, and the connections are dead.
  const sleep = (ms: number) => vi.setSystemTime(Date.now() + ms);

  const wakeUps: [string, (page: StreamClient) => void][] = [
    ['is shown', (page) => page.setVisible(true)],
    ['notices that its timer was late', (page) => page.ping()],
  ];
  test.each(wakeUps)('every connection is replaced when the page %s', async (_, wakeUp) => {
    const { plane, page } = open();
    note(page, 'a');
    plane.change();
    await pass();
    const before = plane.requests.length;
    sleep(60_000);
    wakeUp(page);
    await pass(1_100);
    expect(plane.requests.slice(before).sort()).toEqual(['agents/a/events?after=0', 'events#1']);
  });

  test('a hidden page, whose timer is always late, keeps its connections', async () => {
    const { plane, page } = open();
    page.setVisible(false);
    await pass();
    sleep(60_000);
    page.ping();
    await pass(1_100);
    expect(plane.requests).toEqual(['events']);
  });

  test('connections that hear from the plane stay open while the page is hidden and shown again', async () => {
    const { plane, page } = open();
    page.setVisible(false);
    plane.change();
    await pass(30_000);
    plane.change();
    await pass(30_000);
    page.setVisible(true);
    await pass(1_100);
    expect(plane.requests).toEqual(['events']);
  });
});

test('a page continues with another hub from its position', async () => {
  const { plane, page } = open();
  const { seen } = note(page, 'a');
  plane.append('a', 3);
  await pass();
  page.disconnect();
  plane.append('a', 3);
  await pass();
  expect(plane.open).toEqual([]);
  page.connect();
  await pass();
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
});

test('a deleted agent is reported, and is no longer selected', async () => {
  const { page, texts } = open();
  const { seen } = note(page, 'x');
  await pass();
  expect(seen).toEqual(['gone']);
  expect(texts.at(-1)).toBe('Online · SSE idle');
});

test('a page with the rejected token is signed out; a page with another token sends its own', () => {
  const posted: ToHub[] = [];
  let deliver!: (message: ToClient) => void;
  const page = new StreamClient({
    token: 't',
    is_online: true,
    is_visible: true,
    connectToHub: (receive) => {
      deliver = receive;
      return { post: (message) => posted.push(message), close: () => {} };
    },
  });
  const signedOut = vi.fn();
  page.onSignedOut(signedOut);
  page.setToken('u');
  posted.length = 0;
  deliver({ type: 'signed_out', token: 't' });
  expect(signedOut).not.toHaveBeenCalled();
  expect(posted).toEqual([{ type: 'token', token: 'u' }]);
  deliver({ type: 'signed_out', token: 'u' });
  expect(signedOut).toHaveBeenCalledOnce();
});

test('changes and reload requests reach listeners until they unsubscribe', async () => {
  const { plane, page } = open();
  const frames: (string | null)[] = [];
  const reload = vi.fn();
  const off = page.onFleet((changes) => frames.push(...changes.map(({ id }) => id)));
  page.onReload(reload);
  await pass();
  expect(page.state.getSnapshot().fleet).toBe('connected');
  plane.change(2);
  await pass();
  off();
  plane.change();
  await pass();
  expect(frames).toEqual(['1', '2']);
  expect(reload).toHaveBeenCalledOnce();
});
