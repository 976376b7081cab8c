/** Tasks and their threads as clients see them: statuses, validation messages in order, lists, and the stream. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../../server/server.ts';
import { Streams } from '../../server/sse.ts';
import { openFakeHttp, ROOT_TOKEN, requesterWithToken, USER_TOKEN } from '../../testing/http.ts';
import { taskHandlers } from './http.ts';
import { MIA, TasksFixture, TEAM } from './testing.ts';

const TASKS = `/api/teams/${TEAM}/tasks`;

let fixture: TasksFixture;
let server: HttpServer;
const request = requesterWithToken(() => server, ROOT_TOKEN);
let one: string;
beforeEach(async () => {
  fixture = await TasksFixture.make();
  const tokens = { isLive: async () => true };
  const { tasks, messages } = fixture;
  server = await openFakeHttp(
    taskHandlers({ tasks, messages, tokens, streams: new Streams(fixture.store.wakes, { recheck_ms: 20 }) }),
  );
  one = `${TASKS}/${(await fixture.task()).id}`;
});
afterEach(async () => {
  await server.drain();
  await fixture.end();
});

async function refusal(method: string, path: string, body?: unknown, token = ROOT_TOKEN): Promise<string> {
  const answer = await request(method, path, body, { token });
  return `${answer.status} ${answer.body.error}`;
}

test('returns 201 with its location for a new resource, and 200 for an existing one', async () => {
  const created = await request('POST', TASKS, { title: 'Next', assignee_member_id: 'dev' });
  expect(created).toMatchObject({
    status: 201,
    body: { number: 2, description: '', assignee_member_id: 'dev' },
  });
  expect(await request('GET', created.location!)).toMatchObject({ status: 200, body: created.body });
  const patch = await request('PATCH', created.location!, { status: 'completed', version: 1, unknown: 1 });
  expect(patch).toMatchObject({ status: 200, body: { status: 'completed', version: 2 } });
  const sent = await request('POST', `${one}/messages`, { route: 'to_leader', text: 'hello' });
  expect(sent).toMatchObject({
    status: 201,
    body: { from_actor_id: 'user:root', to_actor_id: `lead@${TEAM}` },
  });
  expect(await request('GET', sent.location!)).toMatchObject({ status: 200, body: sent.body });
  const run = await request('POST', `${one}/runs`, { input: { a: 1 } });
  expect(run).toMatchObject({ status: 201, location: `/api/teams/${TEAM}/runs/${run.body.id}` });
  expect(await refusal('POST', `${one}/runs`)).toBe('409 task has an active run');
});

test.each<[method: string, body: unknown, message: string]>([
  ['POST', {}, '400 title is required'],
  ['POST', { title: '  ' }, '400 title is required'],
  ['POST', { title: 7 }, '400 title must be a string'],
  ['POST', { title: 'a', assignee_member_id: 'x' }, '400 assignee_member_id must reference a defined member'],
  ['PATCH', { title: '' }, '400 title is required'],
  [
    'PATCH',
    { status: 'done' },
    '400 status must be one of: open, in_progress, in_review, completed, cancelled',
  ],
  ['PATCH', { title: 'x', version: 9 }, '409 task changed concurrently; reload and retry'],
])('%s of a task with %j is refused: %s', async (method, body, message) => {
  expect(await refusal(method, method === 'POST' ? TASKS : one, body)).toBe(message);
});

test.each<[body: unknown, message: string]>([
  [{}, '400 route must be one of: broadcast, to_leader, to_member'],
  [{ route: 'x', text: 1 }, '400 route must be one of: broadcast, to_leader, to_member'],
  [{ route: ['broadcast'] }, '400 route must be one of: broadcast, to_leader, to_member'],
  [{ route: null, text: 'a' }, '400 route must be one of: broadcast, to_leader, to_member'],
  [{ route: 'to_leader' }, '400 route=to_leader requires a leader member in spec.members'],
  [{ route: 'to_member' }, '400 to_actor_id is required when route=to_member'],
  [{ route: 'to_member', to_actor_id: null }, '400 to_actor_id is required when route=to_member'],
  [{ route: 'to_member', to_actor_id: 'x' }, '400 unknown actor: x'],
  [{ route: 'broadcast' }, '400 text is required'],
  [{ route: 'broadcast', payload: [] }, '400 payload must be an object'],
  [{ route: 'broadcast', payload: 'a' }, '400 payload must be an object'],
  [{ route: 'broadcast', text: 'a', reply_to: 7 }, '400 reply_to must be a message of the conversation'],
])('a message %j is refused: %s', async (body, message) => {
  await fixture.respec({ leader_member_id: null });
  expect(await refusal('POST', `${one}/messages`, body)).toBe(message);
});

test('returns 404 with a specific message for missing or inaccessible resources', async () => {
  expect(await refusal('GET', `${TASKS}/task_none`)).toBe('404 task not found');
  expect(await refusal('GET', '/api/teams/none/tasks')).toBe('404 team not found');
  expect(await refusal('GET', `${one}/messages/7`)).toBe('404 message not found');
  expect(await refusal('GET', `/api/teams/${TEAM}/conversations/none`)).toBe('404 conversation not found');
  const conversation = `/api/teams/${TEAM}/conversations/none/messages`;
  expect(await refusal('GET', conversation)).toBe('404 conversation not found');
  for (const path of [TASKS, one, `${one}/messages`, `${one}/messages/events`]) {
    expect(await refusal('GET', path, undefined, USER_TOKEN)).toBe('404 team not found');
  }
});

test('lists are plain, or pages on request', async () => {
  for (const text of ['tidy garden', 'tidy shed'])
    await request('POST', `${one}/messages`, { route: 'broadcast', text });
  const { conversation_id } = (await request('GET', one)).body;
  const texts = (body: { text: string }[]) => body.map(({ text }) => text);
  expect(texts((await request('GET', `${one}/messages`)).body)).toEqual(['tidy garden', 'tidy shed']);
  expect(texts((await request('GET', `${one}/messages?q=shed`)).body)).toEqual(['tidy shed']);
  expect(texts((await request('GET', `${one}/messages?thread=1`)).body)).toEqual(['tidy garden']);
  const conversation = `/api/teams/${TEAM}/conversations/${conversation_id}`;
  expect((await request('GET', conversation)).body).toMatchObject({ messages: 2, last_message_id: 2 });
  const page = (await request('GET', `${conversation}/messages?limit=1`)).body;
  expect(texts(page.items)).toEqual(['tidy garden']);
  const rest = (await request('GET', `${conversation}/messages?cursor=${page.next_cursor}`)).body;
  expect(texts(rest.items)).toEqual(['tidy shed']);
  expect(rest).not.toHaveProperty('next_cursor');
  expect(await refusal('GET', `${one}/messages?limit=0`)).toBe('400 limit must be an integer from 1 to 200');
  expect(await refusal('GET', `${one}/messages?cursor=x`)).toBe('400 invalid cursor');
  expect(await request('GET', `${TASKS}?status=cancelled`)).toMatchObject({ status: 200, body: [] });
});

test('the stream continues after the client’s last event, whatever the URL says', async () => {
  for (const text of ['a', 'b', 'c']) {
    await fixture.messages.send(MIA, TEAM, one.slice(TASKS.length + 1), { route: 'broadcast', text }, null);
  }
  const first = async (headers: Record<string, string>, query = '') => {
    const response = await fetch(`${server.url}${one}/messages/events${query}`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, ...headers },
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('data: ')) text += (await reader.read()).value;
    await reader.cancel();
    return /id: (\d+)/.exec(text)![1];
  };
  expect(await first({})).toBe('1');
  expect(await first({}, '?after=1')).toBe('2');
  expect(await first({ 'last-event-id': '2' }, '?after=1')).toBe('3');
  expect(await refusal('GET', `${one}/messages/events?after=x`)).toBe('400 invalid last event id');
});

test('the stream of a thread ends when the client loses access', async () => {
  const response = await fetch(`${server.url}${one}/messages/events`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  await fixture.store.write((tx) => tx.run(tx.sql.deleteFrom('teams')));
  expect(await response.text()).toBe('retry: 1000\n\n');
});
