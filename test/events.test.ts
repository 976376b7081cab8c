import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import type { Frame } from '../src/client/client.ts';
import { Client } from '../src/client/client.ts';
import { ROOT, TestPlane } from '../src/testing/plane.ts';

let plane: TestPlane;
let agent_id: string;
let head: number;

beforeAll(async () => {
  plane = await TestPlane.open();
  const agent = await plane.agent('for i in 1 2 3 4 5; do echo line $i; sleep 0.05; done');
  agent_id = agent.id;
  head = (await plane.finished(agent_id)).last_seq;
});
afterAll(() => plane?.close());

const open = (headers: Record<string, string>, path = `/api/agents/${agent_id}/events`, method = 'GET') =>
  fetch(plane.url + path, { method, headers: { authorization: `Bearer ${plane.token}`, ...headers } });

async function firstFrames(headers: Record<string, string>, count: number, query = ''): Promise<string> {
  const response = await open(headers, `/api/agents/${agent_id}/events${query}`);
  expect(response.status).toBe(200);
  let text = '';
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  while (text.split('\n\n').length <= count) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  await reader.cancel();
  return text;
}

test('the stream begins with retry and the whole log, and its headers disable buffering in proxies', async () => {
  const response = await open({}, undefined, 'HEAD');
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(response.headers.get('cache-control')).toBe('no-cache');
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  const text = await firstFrames({}, head + 1);
  expect(text.startsWith('retry: 1000\n\nid: 1\nevent: status\ndata: {"type":"status",')).toBe(true);
});

test('a client can resume after any event', async () => {
  for (let after = 0; after < head; after++) {
    const text = await firstFrames({ 'last-event-id': String(after) }, 2);
    expect(text).toMatch(new RegExp(`^retry: 1000\n\nid: ${after + 1}\n`));
  }
  expect(await firstFrames({}, 2, '?tail=1')).toMatch(new RegExp(`\n\nid: ${head}\n`));
  expect(await firstFrames({}, 2, '?after=2')).toMatch(/\n\nid: 3\n/);
  expect(await firstFrames({ 'last-event-id': '1' }, 2, '?after=3')).toMatch(/\n\nid: 2\n/);
});

test('an event id that is not a number is refused, and one beyond the head is reset', async () => {
  for (const id of ['abc', '-1', '1.5', '0x10', '1e3']) {
    const response = await open({ 'last-event-id': id });
    expect([response.status, await response.text()]).toEqual([400, '{"error":"invalid last event id"}']);
  }
  const refused = await open({}, `/api/agents/${agent_id}/events?after=-3`);
  expect(await refused.json()).toEqual({ error: 'invalid last event id' });
  for (const id of [String(head + 1), '9223372036854775808', '99999999999999999999999']) {
    const text = await firstFrames({ 'last-event-id': id }, 2);
    expect(text).toContain(`id: ${head}\nevent: error\n`);
    expect(text).toContain('"code":"reset"');
  }
});

test('invalid cursors and limits are refused with the messages of the contract', async () => {
  const get = async (query: string) => (await open({}, `/api/agents?${query}`)).json();
  expect(await get('cursor=nonsense')).toEqual({ error: 'invalid cursor' });
  for (const limit of ['0', '201', '-1', 'x', '1.5']) {
    expect(await get(`limit=${limit}`)).toEqual({ error: 'limit must be an integer from 1 to 200' });
  }
});

test('lists are returned as an array, or page by page without gaps', async () => {
  const all = (await plane.client.call('getLog', { params: { agent_id } })) as { seq: number }[];
  expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: head }, (_, i) => i + 1));
  const paged: number[] = [];
  for await (const event of plane.client.all('getLog', { params: { agent_id }, query: { limit: 3 } }))
    paged.push(event.seq);
  expect(paged).toEqual(all.map(({ seq }) => seq));
});

test('search finds the output of an agent', async () => {
  const search = () =>
    plane.client.call('searchLog', { params: { agent_id }, query: { q: 'line 4' } }) as Promise<
      { snippet: string }[]
    >;
  let hits = await search();
  for (let tries = 0; hits.length === 0 && tries < 200; tries++) {
    await sleep(50);
    hits = await search();
  }
  expect(hits[0]!.snippet).toContain('line 4');
});

test('raw output supports range requests', async () => {
  const whole = (await plane.output(agent_id)).toString();
  expect(whole).toBe('line 1\nline 2\nline 3\nline 4\nline 5\n');
  const range = async (value: string, query = '') => {
    const response = await open({ range: value }, `/api/agents/${agent_id}/output${query}`);
    return [response.status, response.headers.get('content-range'), await response.text()];
  };
  expect(await range('bytes=7-12')).toEqual([206, 'bytes 7-12/35', 'line 2']);
  expect(await range('bytes=-7')).toEqual([206, 'bytes 28-34/35', 'line 5\n']);
  expect(await range('bytes=35-')).toEqual([416, 'bytes */35', '{"error":"range is not satisfiable"}']);
  expect(await range('bytes=0-3', '?tail=7')).toEqual([206, 'bytes 0-3/7', 'line']);
});

test('a stream stays open after the end of an agent and shows its next session', async () => {
  const agent = await plane.agent('echo one');
  await plane.finished(agent.id);
  const seen = plane.frames(
    agent.id,
    (frames) => frames.filter(({ data }) => data.status === 'completed').length === 2,
  );
  await plane.client.call('startAgent', { params: { agent_id: agent.id } });
  const sessions = new Set((await seen).map(({ data }) => data.session_id));
  expect(sessions.size).toBe(2);
});

test('the fleet feed contains every change of a record and no output', async () => {
  const stop = new AbortController();
  const frames: Frame[] = [];
  let state: string | null = null;
  const onState = (next: string) => {
    state = next;
  };
  const following = (async () => {
    const feed = plane.client.follow('followAll', { signal: stop.signal }, { onState });
    for await (const frame of feed) frames.push(frame);
  })();
  await expect.poll(() => state).toBe('connected');
  const agent = await plane.agent('seq 1 1000');
  await plane.finished(agent.id);
  await plane.client.call('deleteAgent', { params: { agent_id: agent.id } });
  const record = (frame?: Frame) => frame?.data.record as { status: string; deleted?: boolean } | undefined;
  while (!record(frames.at(-1))?.deleted) await sleep(20);
  stop.abort();
  await following;
  expect(frames.every(({ event }) => event === 'agent' || event === 'heartbeat')).toBe(true);
  expect(frames.map((frame) => record(frame)?.status)).toEqual([
    'created',
    'running',
    'completed',
    'completed',
  ]);
});

test('a revoked token ends its streams', { timeout: 60_000 }, async () => {
  await plane.client.call('createUser', { body: { username: 'eve', password: ROOT.password, role: 'user' } });
  const { token } = await new Client({ url: plane.url }).call('login', {
    body: { username: 'eve', password: ROOT.password },
  });
  const eve = new Client({ url: plane.url, token });
  const response = await eve.open('followAll', {});
  await eve.call('logout');
  for await (const _ of response.body!);
  await expect(eve.call('getMe')).rejects.toThrow('invalid token');
});
