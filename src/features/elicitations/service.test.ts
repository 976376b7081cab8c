/** Elicitations, with an agent whose requests are scripted by the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RequestId } from '../../acp/message.ts';
import { elicitationForm } from '../../testing/acp-scenarios.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import type { Caller } from '../accounts/rules.ts';
import { loadAcpState, storeAcpState } from '../agents/queries/acp-state.ts';
import { findSession } from '../agents/queries/agents.ts';
import { limits as reviewLimits } from '../reviews/limits.ts';
import type { Elicitation } from './rules.ts';
import type { ElicitationAnswer } from './service.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const content = { name: 'v1', region: 'eu', checks: ['lint'] };
const accept: ElicitationAnswer = { action: 'accept', content };
const respond = (id: string, answer: ElicitationAnswer = accept, caller: Caller = ANA) =>
  fixture.elicitations.respond(caller, id, answer, null);
const get = (id: string) => fixture.elicitations.get(ANA, id);
const elicit = (acp: ScriptedAcp, id: RequestId = 1, params: object = elicitationForm) =>
  acp.send({ kind: 'request', id, method: 'elicitation/create', params: { sessionId: 'acp-1', ...params } });
const link = (more: object = {}) => ({
  mode: 'url',
  elicitationId: 'e1',
  message: 'Sign in to the registry',
  url: 'https://example.org/connect?id=1',
  ...more,
});

/** An agent with an open turn. */
async function prompted(): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  return { id, acp };
}

/** Oldest first; waits until there are this many. */
async function elicitations(count: number): Promise<Elicitation[]> {
  return vi.waitFor(async () => {
    const { items } = await fixture.elicitations.list(ANA, {}, {});
    expect(items).toHaveLength(count);
    return items.toReversed();
  }, SOON);
}

async function rowsOf(table: 'audit' | 'elicitations' | 'feed') {
  return fixture.store.read((reader) => reader.all(reader.sql.selectFrom(table).selectAll().orderBy('id')));
}

async function audited(event: string): Promise<unknown[]> {
  const rows = (await rowsOf('audit')) as { event: string; details: string }[];
  return rows.filter((row) => row.event === event).map(({ details }) => JSON.parse(details));
}

test('a form waits for a person, and the input goes only to the agent', async () => {
  const { id, acp } = await prompted();
  elicit(acp, 'q');
  const [elicitation] = await elicitations(1);
  expect(elicitation).toMatchObject({
    agent_id: id,
    session_id: acp.session_id,
    team_id: null,
    mode: 'form',
    message: 'How shall I deploy it?',
    form: { title: 'Deployment', fields: expect.any(Array) },
    url: null,
    tool_call_id: 'call-1',
    status: 'pending',
    delivery: null,
    expires_at: null,
  });
  expect(elicitation!.form!.fields.map(({ name }) => name)).toEqual(
    Object.keys(elicitationForm.requestedSchema.properties),
  );
  expect(await fixture.get(id)).toMatchObject({
    pending_elicitations: 1,
    pending_reviews: 0,
    activity: 'needs_you',
  });
  const event = (await fixture.events(id)).find(({ elicitation_id }) => elicitation_id === elicitation!.id);
  expect(event).toMatchObject({ direction: 'from_agent', method: 'elicitation/create' });
  const entered = { ...content, name: 'a-word-of-its-own' };
  const answered = await respond(elicitation!.id, { action: 'accept', content: entered });
  expect(answered).toMatchObject({ status: 'accepted', answered_by: 'ana', delivery: 'queued' });
  const result = { action: 'accept', content: entered };
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 'q', result });
  await vi.waitFor(async () => expect((await get(elicitation!.id)).delivery).toBe('written'), SOON);
  expect(await fixture.get(id)).toMatchObject({ pending_elicitations: 0, activity: 'working' });
  const fields = Object.keys(entered);
  expect(await audited('elicitation_answered')).toEqual([
    { elicitation_id: elicitation!.id, mode: 'form', action: 'accept', fields },
  ]);
  for (const table of ['audit', 'elicitations', 'feed'] as const) {
    expect(JSON.stringify(await rowsOf(table))).not.toContain(entered.name);
  }
  await fixture.expectSameState(id);
});

test.each<[ElicitationAnswer, string]>([
  [{ action: 'decline' }, 'declined'],
  [{ action: 'cancel' }, 'cancelled'],
])('the answer %j is sent without content', async (answer, status) => {
  const { acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  await expect(respond(elicitation!.id, { ...answer, content: {} })).rejects.toThrow(
    'content is only for action accept of a form',
  );
  expect(await respond(elicitation!.id, answer)).toMatchObject({ status, answered_by: 'ana' });
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 1, result: answer });
});

test('rejected content changes nothing', async () => {
  const { id, acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  const wrong = respond(elicitation!.id, { action: 'accept', content: { ...content, port: 80 } });
  await expect(wrong).rejects.toMatchObject({
    kind: 'invalid',
    message: 'content.port must be at least 1024',
  });
  await expect(respond(elicitation!.id, { action: 'accept' })).rejects.toThrow('content.name is required');
  expect(await get(elicitation!.id)).toMatchObject({ status: 'pending', delivery: null });
  expect(acp.lines).toHaveLength(3);
  expect(await audited('elicitation_answered')).toEqual([]);
  await fixture.expectSameState(id);
});

test('an accepted URL completes when the agent reports it', async () => {
  const { id, acp } = await prompted();
  elicit(acp, 1, link());
  const [elicitation] = await elicitations(1);
  const url = 'https://example.org/connect?id=1';
  expect(elicitation).toMatchObject({ mode: 'url', url, form: null, completed_at: null });
  await expect(respond(elicitation!.id)).rejects.toThrow('content is only for action accept of a form');
  expect(await respond(elicitation!.id, { action: 'accept' })).toMatchObject({ status: 'accepted' });
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 1, result: { action: 'accept' } });
  expect(await audited('elicitation_answered')).toMatchObject([{ mode: 'url', host: 'example.org' }]);
  const complete = (elicitationId: unknown) =>
    acp.send({ kind: 'notification', method: 'elicitation/complete', params: { elicitationId } });
  complete('another');
  complete('e1');
  await vi.waitFor(async () => expect((await get(elicitation!.id)).completed_at).not.toBeNull(), SOON);
  const { completed_at } = await get(elicitation!.id);
  fixture.clock.advance(1_000);
  complete('e1');
  acp.sendUpdate({ sessionUpdate: 'session_info_update', title: 'after it' });
  await vi.waitFor(async () => {
    expect(JSON.stringify((await fixture.events(id)).at(-1))).toContain('after it');
  }, SOON);
  expect(await get(elicitation!.id)).toMatchObject({ status: 'accepted', completed_at });
  await fixture.expectSameState(id);
});

test('the first answer counts; a later one gets a 409 that names the first responder', async () => {
  const { acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  const eve: Caller = { ...BEN, user_id: 'usr_e', username: 'eve', role: 'root' };
  const answers = [ANA, eve, ANA].map((caller) => respond(elicitation!.id, accept, caller));
  const settled = await Promise.allSettled(answers);
  expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  const { answered_by } = await get(elicitation!.id);
  const lost = settled.flatMap((item) => (item.status === 'rejected' ? [item.reason] : []));
  const message = `elicitation is already accepted by ${answered_by}`;
  expect(lost).toMatchObject(Array(2).fill({ kind: 'conflict', message }));
  // This is also true if the late answer would not fit the form.
  await expect(respond(elicitation!.id, { action: 'accept', content: {} })).rejects.toThrow(message);
  await acp.receive('response');
  expect(acp.lines).toHaveLength(4);
});

test('an answer repeated with its idempotency key gets the same response', async () => {
  const { acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  const request = new Uint8Array(32);
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toHaveProperty('first');
  const first = await fixture.elicitations.respond(ANA, elicitation!.id, accept, 'key');
  await fixture.close();
  await fixture.open();
  const again = await fixture.idempotency.begin(ANA, 'key', request);
  expect(again).toMatchObject({ stored: { status: 200, body: first } });
});

test('elicitations survive restarts, and an answer is delivered once', async () => {
  const { id, acp } = await prompted();
  elicit(acp, 1);
  elicit(acp, 2, link());
  const [one, two] = await elicitations(2);
  await fixture.close();
  await fixture.open();
  const { input } = fixture.node;
  // The answer is committed, but the plane dies before it reaches the agent.
  fixture.node.input = () => new Promise(() => {});
  await respond(two!.id, { action: 'accept' });
  expect((await get(two!.id)).delivery).toBe('queued');
  await fixture.close();
  fixture.node.input = input;
  await fixture.open();
  expect(await acp.receive('response')).toMatchObject({ id: 2, result: { action: 'accept' } });
  await respond(one!.id);
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: accept });
  await vi.waitFor(async () => {
    expect((await elicitations(2)).map(({ delivery }) => delivery)).toEqual(['written', 'written']);
  }, SOON);
  expect(acp.lines).toHaveLength(5);
  await fixture.expectSameState(id);
});

test('an elicitation that nobody answers in time expires, and the agent gets cancel', async () => {
  fixture.review_timeout_ms = 60_000;
  const { id, acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  expect(elicitation!.expires_at).toBe(new Date(fixture.clock.now() + 60_000).toISOString());
  await fixture.advanceClock(60_000);
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: { action: 'cancel' } });
  expect(await get(elicitation!.id)).toMatchObject({ status: 'expired', answered_by: null });
  expect(await audited('elicitation_answered')).toMatchObject([
    { elicitation_id: elicitation!.id, action: 'cancel', why: 'no answer in time' },
  ]);
  await expect(respond(elicitation!.id)).rejects.toThrow('elicitation is already expired');
  elicit(acp, 2);
  const [, next] = await elicitations(2);
  await respond(next!.id);
  await fixture.advanceClock(60_000);
  expect((await get(next!.id)).status).toBe('accepted');
  await fixture.expectSameState(id);
});

test('an elicitation that the agent withdraws is cancelled', async () => {
  const { id, acp } = await prompted();
  elicit(acp, 1);
  const [elicitation] = await elicitations(1);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  expect(await acp.receive('response')).toMatchObject({ id: 1, error: { code: -32800 } });
  expect(await get(elicitation!.id)).toMatchObject({
    status: 'cancelled',
    answered_by: null,
    delivery: null,
  });
  expect(await fixture.get(id)).toMatchObject({ pending_elicitations: 0, activity: 'working' });
  await expect(respond(elicitation!.id)).rejects.toThrow('elicitation is already cancelled');
  await fixture.expectSameState(id);
});

test('an answer to a request that the agent withdrew is undeliverable', async () => {
  const { id, acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  const reached = Promise.withResolvers<void>();
  const { input } = fixture.node;
  fixture.node.input = async (...args) => {
    await reached.promise;
    return input(...args);
  };
  await respond(elicitation!.id);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  await vi.waitFor(async () => expect((await get(elicitation!.id)).delivery).toBe('undeliverable'), SOON);
  expect((await fixture.events(id)).at(-1)).toMatchObject({
    code: 'elicitation_undeliverable',
    error: 'the answer of ana did not reach the agent',
    elicitation_id: elicitation!.id,
  });
  expect(await audited('elicitation_undeliverable')).toMatchObject([
    { elicitation_id: elicitation!.id, answered_by: 'ana', status: 'accepted' },
  ]);
  reached.resolve();
  await acp.receive('response');
  expect(await get(elicitation!.id)).toMatchObject({ status: 'accepted', delivery: 'undeliverable' });
  await fixture.expectSameState(id);
});

test('a withdrawal ends only the elicitation with that id', async () => {
  const { acp } = await prompted();
  elicit(acp, 1);
  elicit(acp, 2);
  const [one, two] = await elicitations(2);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  await vi.waitFor(async () => expect((await get(one!.id)).status).toBe('cancelled'), SOON);
  expect((await get(two!.id)).status).toBe('pending');
});

test('an agent that ends leaves no pending elicitations', async () => {
  const { id, acp } = await prompted();
  elicit(acp, 1);
  elicit(acp, 2);
  const [one, two] = await elicitations(2);
  const refused = Promise.withResolvers<number>();
  fixture.node.input = () => refused.promise;
  await respond(one!.id);
  fixture.node.end(acp.session_id, 1);
  await vi.waitFor(async () => expect((await get(two!.id)).status).toBe('cancelled'), SOON);
  refused.reject(new Error('no reader'));
  expect(await elicitations(2)).toMatchObject([
    { status: 'accepted', delivery: 'undeliverable', answered_by: 'ana' },
    { status: 'cancelled', delivery: null, answered_by: null },
  ]);
  expect((await fixture.errors(id)).toSorted()).toEqual(['elicitation_undeliverable', 'turn_lost']);
  expect(await fixture.get(id)).toMatchObject({ pending_elicitations: 0, activity: null });
  await expect(respond(two!.id)).rejects.toThrow('already cancelled');
});

test('cancelling the turn answers it with cancel, before the agent gets the cancel of the turn', async () => {
  const { id, acp } = await prompted();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  await fixture.prompting.cancel(BEN, id).catch(() => {});
  await fixture.prompting.cancel(ANA, id);
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: { action: 'cancel' } });
  await acp.receive('notification', 'session/cancel');
  expect(await get(elicitation!.id)).toMatchObject({ status: 'cancelled', answered_by: 'ana' });
  await fixture.expectSameState(id);
});

test('an agent may ask before it has a session, and is not reported as silent while it waits', async () => {
  const { id, acp } = await startAcp(fixture);
  const hello = await acp.receive('request', 'initialize');
  expect(hello.params).toMatchObject({ clientCapabilities: { elicitation: { form: {}, url: {} } } });
  acp.send({
    kind: 'request',
    id: 1,
    method: 'elicitation/create',
    params: { requestId: hello.id, ...link() },
  });
  const [elicitation] = await elicitations(1);
  expect((await fixture.get(id)).activity).toBe('needs_you');
  await fixture.advanceClock(60_000);
  await fixture.advanceClock(60_000);
  expect(await fixture.errors(id)).toEqual([]);
  await respond(elicitation!.id, { action: 'accept' });
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: { action: 'accept' } });
  expect((await fixture.get(id)).activity).toBe('starting');
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => expect(await fixture.errors(id)).toEqual(['acp_silent']), SOON);
  await fixture.expectSameState(id);
});

test.each([
  ['an unknown mode', { mode: 'voice', message: 'Say it' }],
  ['a schema that cannot be shown', { requestedSchema: { properties: { a: { type: 'object' } } } }],
  ['a URL that runs a script', link({ url: 'javascript:alert(1)' })],
])('%s is refused with an error, and the log says why', async (_what, params) => {
  const { id, acp } = await prompted();
  elicit(acp, 1, params);
  expect(await acp.receive('response')).toMatchObject({
    id: 1,
    error: { code: -32602, message: expect.stringMatching(/^invalid params: /) },
  });
  expect(await fixture.errors(id)).toEqual(['elicitation_unreadable']);
  expect((await fixture.events(id)).some(({ elicitation_id }) => elicitation_id !== undefined)).toBe(false);
  await elicitations(0);
  await fixture.expectSameState(id);
});

test('shown texts are redacted; names and values are sent back to the agent unchanged', async () => {
  const env = { KEY: 'k3y-of-mine', MODE: 'fast-and-loose' };
  const { id, acp } = await startAcp(fixture, { env, prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  const properties = {
    'fast-and-loose': { type: 'string', enum: ['fast-and-loose'], description: `not ${env.KEY}` },
    key: { type: 'string', title: env.KEY, default: env.KEY },
  };
  elicit(acp, 1, { message: `with ${env.KEY}?`, requestedSchema: { properties } });
  const [elicitation] = await elicitations(1);
  expect(elicitation).toMatchObject({
    message: 'with [redacted:KEY]?',
    form: {
      fields: [
        {
          name: 'fast-and-loose',
          description: 'not [redacted:KEY]',
          choices: [{ value: 'fast-and-loose', title: '[redacted:MODE]' }],
        },
        { name: 'key', title: '[redacted:KEY]', default: null },
      ],
    },
  });
  const answer = { 'fast-and-loose': 'fast-and-loose', key: env.KEY };
  await respond(elicitation!.id, { action: 'accept', content: answer });
  expect(await acp.receive('response')).toMatchObject({ result: { action: 'accept', content: answer } });
  const events = JSON.stringify(await fixture.events(id));
  expect(events).not.toContain(env.KEY);
  expect(events).not.toContain(env.MODE);
});

test('only the agent’s owner and root can see and answer them', async () => {
  const { session_id } = await fixture.create({ protocol: 'acp', start: true }, null, BEN);
  const acp = new ScriptedAcp(fixture, session_id!);
  await acp.openSession();
  elicit(acp);
  const [elicitation] = await elicitations(1);
  const eve: Caller = { ...BEN, user_id: 'usr_e', username: 'eve' };
  expect((await fixture.elicitations.list(eve, {}, {})).items).toEqual([]);
  const hidden = 'elicitation not found';
  await expect(fixture.elicitations.get(eve, elicitation!.id)).rejects.toThrow(hidden);
  await expect(respond(elicitation!.id, accept, eve)).rejects.toThrow(hidden);
  await expect(respond('eli_x')).rejects.toThrow(hidden);
  const pending = { status: 'pending', agent_id: elicitation!.agent_id } as const;
  expect((await fixture.elicitations.list(BEN, pending, { limit: 1 })).items).toHaveLength(1);
  expect((await respond(elicitation!.id, accept, BEN)).answered_by).toBe('ben');
  expect((await fixture.elicitations.list(BEN, pending, {})).items).toEqual([]);
});

test('lists are newest first, in pages', async () => {
  const { acp } = await prompted();
  for (let n = 0; n < 5; n++) elicit(acp, n);
  const ids = (await elicitations(5)).map(({ id }) => id).toReversed();
  const first = await fixture.elicitations.list(ANA, {}, { limit: 3 });
  expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 3));
  const second = await fixture.elicitations.list(ANA, {}, { limit: 3, cursor: first.next_cursor });
  expect(second.items.map(({ id }) => id)).toEqual(ids.slice(3));
  expect(second.next_cursor).toBeUndefined();
});

test('old requests that were withdrawn or have expired are deleted after requests of any kind', async () => {
  const { acp } = await prompted();
  elicit(acp, 'withdrawn');
  const [withdrawn] = await elicitations(1);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 'withdrawn' } });
  await vi.waitFor(async () => expect((await get(withdrawn!.id)).status).toBe('cancelled'), SOON);
  await fixture.store.write(async (tx) => {
    const { num: _, ...row } = (await tx.get(tx.sql.selectFrom('elicitations').selectAll()))!;
    for (let n = 1; n <= reviewLimits.unanswered_requests_max; n++) {
      const expired = n % 2 === 0 && ({ status: 'expired', delivery: 'written' } as const);
      await tx.run(tx.sql.insertInto('elicitations').values({ ...row, id: `eli_${n}`, ...expired }));
    }
    const session = (await findSession(tx, acp.session_id))!;
    const state = await loadAcpState(tx, session.num);
    const received_count = reviewLimits.requests_per_cleanup - 1;
    await storeAcpState(tx, session.num, { ...state, received_count });
  });
  acp.requestPermission('next');
  await vi.waitFor(
    async () => expect(await rowsOf('elicitations')).toHaveLength(reviewLimits.unanswered_requests_max),
    SOON,
  );
  await expect(get(withdrawn!.id)).rejects.toThrow('elicitation not found');
});
