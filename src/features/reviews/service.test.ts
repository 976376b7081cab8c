/** Permission reviews, with a scripted agent. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Reader } from '../../store/store.ts';
import { ANA, BEN, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import type { Caller } from '../accounts/rules.ts';
import { loadAcpState, storeAcpState } from '../agents/queries/acp-state.ts';
import { findSession } from '../agents/queries/agents.ts';
import { limits } from './limits.ts';
import type { Review } from './rules.ts';
import type { ReviewAnswer } from './service.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const option = (optionId: string, kind: string) => ({ optionId, name: optionId, kind });
const selected = (optionId: string) => ({ outcome: { outcome: 'selected', optionId } });
const cancelled = { outcome: { outcome: 'cancelled' } };
const respond = (id: string, answer: ReviewAnswer, caller: Caller = ANA) =>
  fixture.reviews.respond(caller, id, answer, null);
const get = (id: string) => fixture.reviews.get(ANA, id);

/** An agent in a turn. */
async function prompted(): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  return { id, acp };
}

/** The newest reviews, once there are this many. */
async function reviews(count: number): Promise<Review[]> {
  return vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, {}, {});
    expect(items).toHaveLength(count);
    return items.toReversed();
  }, SOON);
}

async function audited(event: string): Promise<unknown[]> {
  const rows = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('audit').selectAll().orderBy('id')),
  );
  return rows.filter((row) => row.event === event).map(({ details }) => JSON.parse(String(details)));
}

test('a request becomes a review with the agent’s text, and the agent gets the answer', async () => {
  const { id, acp } = await prompted();
  const offered = [option('b', 'reject_once'), option('a', 'allow_once'), option('c', 'never_heard_of')];
  acp.requestPermission('q', offered, 'Write a file');
  const [review] = await reviews(1);
  expect(review).toMatchObject({
    agent_id: id,
    session_id: acp.session_id,
    status: 'pending',
    route: 'human',
    tool_call: { toolCallId: 'c1', title: 'Write a file' },
    options: offered.map(({ optionId, ...rest }) => ({ option_id: optionId, ...rest })),
    decision: null,
    expires_at: null,
  });
  expect(await fixture.get(id)).toMatchObject({ pending_reviews: 1, activity: 'needs_you' });
  const event = (await fixture.events(id)).find(({ review_id }) => review_id === review!.id);
  expect(event).toMatchObject({ direction: 'from_agent', method: 'session/request_permission' });
  const answered = await respond(review!.id, { decision: 'allow' });
  expect(answered).toMatchObject({
    status: 'answered',
    decision: 'allow',
    option_id: 'a',
    answered_by: 'ana',
  });
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 'q', result: selected('a') });
  await vi.waitFor(async () => expect((await get(review!.id)).delivery).toBe('written'), SOON);
  expect(await fixture.get(id)).toMatchObject({ pending_reviews: 0, activity: 'working' });
  const details = {
    ...{ review_id: review!.id, decision: 'allow', option_id: 'a', outcome: 'selected' },
    ...{ option_name: offered.find(({ optionId }) => optionId === 'a')!.name, title: 'Write a file' },
  };
  expect(await audited('permission_reviewed')).toEqual([details]);
  await fixture.expectSameState(id);
});

test('the audit record of an answer contains the agent, its workdir, the user and the address', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission('q', [option('y', 'allow_once')]);
  const [review] = await reviews(1);
  await respond(review!.id, { decision: 'allow' }, { ...ANA, ip: '192.0.2.7' });
  const rows = await fixture.store.read((reader) =>
    reader.all(reader.sql.selectFrom('audit').selectAll().where('event', '=', 'permission_reviewed')),
  );
  const { workdir } = await fixture.get(id);
  expect(workdir).not.toBe('');
  expect(rows).toMatchObject([
    { agent_id: id, workdir, user_id: ANA.user_id, ip: '192.0.2.7', level: 'info' },
  ]);
});

test.each<[offered: string[], answer: ReviewAnswer, outcome: object | string]>([
  [['allow_once', 'reject_once'], { decision: 'allow' }, selected('o0')],
  [['allow_once', 'reject_once'], { decision: 'deny' }, selected('o1')],
  [['allow_once', 'allow_always'], { decision: 'allow' }, selected('o0')],
  [['allow_once', 'allow_once'], { decision: 'allow' }, 'option_id is required'],
  [['allow_always'], { decision: 'allow' }, 'option_id is required'],
  [['allow_once', 'reject_always'], { decision: 'deny' }, 'option_id is required'],
  [[], { decision: 'allow' }, 'option_id is required'],
  [['', 'made_up'], { decision: 'allow' }, 'option_id is required'],
  [['allow_once', 'allow_always'], { option_id: 'o1' }, selected('o1')],
  [['allow_always', 'allow_always'], { option_id: 'o1', decision: 'allow' }, selected('o1')],
  [['made_up'], { option_id: 'o0', decision: 'deny' }, selected('o0')],
  [['allow_once'], { option_id: 'o1' }, 'unknown option_id'],
  [['allow_once'], { option_id: '' }, 'unknown option_id'],
  [
    ['allow_once', 'reject_once'],
    { option_id: 'o0', decision: 'deny' },
    'option_id does not match the decision',
  ],
  [['allow_once'], { outcome: 'cancelled' }, cancelled],
  [[], { outcome: 'cancelled' }, cancelled],
])('of %j the answer %j is %j', async (offered, answer, outcome) => {
  const { id, acp } = await prompted();
  acp.requestPermission(
    1,
    offered.map((kind, n) => option(`o${n}`, kind)),
  );
  const [review] = await reviews(1);
  if (typeof outcome === 'string') {
    await expect(respond(review!.id, answer)).rejects.toThrow(outcome);
    expect((await get(review!.id)).status).toBe('pending');
    expect(acp.lines).toHaveLength(3);
  } else {
    await respond(review!.id, answer);
    expect(await acp.receive('response')).toEqual({ kind: 'response', id: 1, result: outcome });
  }
  await fixture.expectSameState(id);
});

test('the first answer counts; later ones get the name of the first responder', async () => {
  const { acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  const eve: Caller = { ...BEN, user_id: 'usr_e', username: 'eve', role: 'root' };
  const answers = [ANA, eve, ANA].map((caller) => respond(review!.id, { decision: 'deny' }, caller));
  const settled = await Promise.allSettled(answers);
  const accepted = settled.filter(({ status }) => status === 'fulfilled');
  expect(accepted).toHaveLength(1);
  const { answered_by } = await get(review!.id);
  const reasons = settled.flatMap((item) => (item.status === 'rejected' ? [item.reason.message] : []));
  expect(reasons).toEqual(Array(2).fill(`permission review is already answered by ${answered_by}`));
  await expect(respond(review!.id, { outcome: 'cancelled' })).rejects.toThrow('is already answered by');
  await acp.receive('response');
  expect(acp.lines).toHaveLength(4);
});

test('a message becomes the next prompt with the answer, or is not sent', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission('q', [option('y', 'allow_once'), option('n', 'reject_once')]);
  const [review] = await reviews(1);
  const reject = (message: string, caller = ANA) =>
    fixture.reviews.respond(caller, review!.id, { option_id: 'n' }, null, message);
  const prompts = async () => (await fixture.prompting.list(ANA, id)).map(({ content }) => content[0]!.text);
  expect(await reject('use npm ci')).toMatchObject({ status: 'answered', option_id: 'n' });
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 'q', result: selected('n') });
  expect(await prompts()).toEqual(['go', 'use npm ci']);
  await expect(reject('never mind')).rejects.toThrow('permission review is already answered by ana');
  expect(await prompts()).toEqual(['go', 'use npm ci']);
  await fixture.expectSameState(id);
});

test('a repeated answer with its key gets the same response', async () => {
  const { acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  const request = new Uint8Array(32);
  expect(await fixture.idempotency.begin(ANA, 'key', request)).toHaveProperty('first');
  const first = await fixture.reviews.respond(ANA, review!.id, { decision: 'allow' }, 'key');
  await fixture.close();
  await fixture.open();
  const again = await fixture.idempotency.begin(ANA, 'key', request);
  expect(again).toMatchObject({ stored: { status: 200, body: first } });
});

test('reviews survive restarts, and any plane process can answer them', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  acp.requestPermission(2);
  const [one, two] = await reviews(2);
  await fixture.close();
  await fixture.open();
  const { input } = fixture.node;
  // The answer is committed, but the plane dies before it reaches the agent.
  fixture.node.input = () => new Promise(() => {});
  await respond(two!.id, { decision: 'deny' });
  expect((await get(two!.id)).delivery).toBe('queued');
  await fixture.close();
  fixture.node.input = input;
  await fixture.open();
  expect(await acp.receive('response')).toMatchObject({ id: 2, result: selected('no') });
  await respond(one!.id, { decision: 'allow' });
  expect(await acp.receive('response')).toMatchObject({ id: 1, result: selected('once') });
  await vi.waitFor(async () => {
    expect((await reviews(2)).map(({ delivery }) => delivery)).toEqual(['written', 'written']);
  }, SOON);
  await fixture.expectSameState(id);
});

test('an unanswered review is cancelled at its deadline', async () => {
  fixture.review_timeout_ms = 60_000;
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  expect(review!.expires_at).toBe(new Date(fixture.clock.now() + 60_000).toISOString());
  await fixture.advanceClock(60_000);
  expect(await acp.receive('response')).toEqual({ kind: 'response', id: 1, result: cancelled });
  expect(await get(review!.id)).toMatchObject({ status: 'expired', answered_by: null, decision: null });
  expect(await audited('permission_reviewed')).toEqual([
    {
      ...{ review_id: review!.id, decision: null, option_id: null, outcome: 'cancelled' },
      ...{ title: review!.tool_call.title, why: 'no answer in time' },
    },
  ]);
  await expect(respond(review!.id, { decision: 'allow' })).rejects.toThrow(
    'permission review is already expired',
  );
  acp.requestPermission(2);
  const [, next] = await reviews(2);
  await respond(next!.id, { decision: 'allow' });
  await fixture.advanceClock(60_000);
  expect((await get(next!.id)).status).toBe('answered');
  await fixture.expectSameState(id);
});

test('a withdrawn request needs no answer, and the agent gets a response', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  expect(await acp.receive('response')).toMatchObject({ id: 1, error: { code: -32800 } });
  expect(await get(review!.id)).toMatchObject({ status: 'cancelled', answered_by: null, delivery: null });
  expect(await fixture.get(id)).toMatchObject({ pending_reviews: 0, activity: 'working' });
  await expect(respond(review!.id, { decision: 'allow' })).rejects.toThrow('already cancelled');
  await fixture.expectSameState(id);
});

test('an answer to a withdrawn request is reported as undeliverable', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  let reach = () => {};
  const { input } = fixture.node;
  fixture.node.input = async (...args) => {
    await new Promise<void>((resolve) => {
      reach = resolve;
    });
    return input(...args);
  };
  await respond(review!.id, { decision: 'allow' });
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  await vi.waitFor(async () => expect((await get(review!.id)).delivery).toBe('undeliverable'), SOON);
  expect((await fixture.events(id)).at(-1)).toMatchObject({
    code: 'review_undeliverable',
    error: 'the answer of ana did not reach the agent',
    review_id: review!.id,
  });
  expect(await audited('permission_undeliverable')).toMatchObject([
    { review_id: review!.id, answered_by: 'ana', option_id: 'once' },
  ]);
  reach();
  await acp.receive('response');
  expect(await get(review!.id)).toMatchObject({ status: 'answered', delivery: 'undeliverable' });
  await fixture.expectSameState(id);
});

test('when an agent dies, no review stays pending and no answer counts as delivered', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  acp.requestPermission(2);
  acp.requestPermission(3);
  const [one, two, three] = await reviews(3);
  await respond(one!.id, { decision: 'allow' });
  await acp.receive('response');
  await vi.waitFor(async () => expect((await get(one!.id)).delivery).toBe('written'), SOON);
  let refuse = (_error: Error) => {};
  fixture.node.input = () =>
    new Promise((_resolve, reject) => {
      refuse = reject;
    });
  await respond(two!.id, { decision: 'deny' });
  fixture.node.end(acp.session_id, 1);
  await vi.waitFor(async () => expect((await get(three!.id)).status).toBe('cancelled'), SOON);
  refuse(new Error('no reader'));
  expect(await reviews(3)).toMatchObject([
    { status: 'answered', delivery: 'written' },
    { status: 'answered', delivery: 'undeliverable', answered_by: 'ana' },
    { status: 'cancelled', delivery: null, answered_by: null },
  ]);
  expect(await audited('permission_undeliverable')).toMatchObject([{ review_id: two!.id }]);
  expect((await fixture.errors(id)).toSorted()).toEqual(['review_undeliverable', 'turn_lost']);
  expect(await fixture.get(id)).toMatchObject({ pending_reviews: 0, activity: null });
  await expect(respond(three!.id, { decision: 'allow' })).rejects.toThrow('already cancelled');
});

test('an answer that reached its agent while the plane was down is not reported as lost', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  const { input } = fixture.node;
  fixture.node.input = async (...args) => {
    await input(...args);
    return new Promise(() => {});
  };
  await respond(review!.id, { decision: 'allow' });
  await acp.receive('response');
  await fixture.close();
  fixture.node.end(acp.session_id, 0);
  await fixture.open();
  await fixture.until(id, 'completed');
  await vi.waitFor(async () => expect(await fixture.errors(id)).toEqual(['turn_lost']), SOON);
  expect(await get(review!.id)).toMatchObject({ status: 'answered', delivery: 'written' });
});

test('requests that are too large together are shortened and say so, also once they are withdrawn or expire', async () => {
  fixture.review_timeout_ms = 60_000;
  const { acp } = await prompted();
  const large = { toolCallId: 'c1', title: 'Run', rawInput: { command: 'ls' }, content: 'x'.repeat(900_000) };
  for (let n = 0; n < 3; n++) acp.requestPermission(n, [option('y', 'allow_once')], '', { toolCall: large });
  const short = { toolCallId: 'c1', title: 'Run', rawInput: { command: 'ls' } };
  const shortened = { ...short, _meta: { svc: { omitted: ['content'] } } };
  const stored = await reviews(3);
  expect(stored.map(({ tool_call }) => tool_call)).toEqual([large, large, shortened]);
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 0 } });
  await vi.waitFor(async () => expect((await get(stored[0]!.id)).status).toBe('cancelled'), SOON);
  expect((await get(stored[0]!.id)).tool_call).toEqual(shortened);
  acp.requestPermission(3, [option('y', 'allow_once')], '', { toolCall: large });
  expect((await reviews(4))[3]!.tool_call).toEqual(large);
  await fixture.advanceClock(60_000);
  await vi.waitFor(async () => {
    expect(await get(stored[1]!.id)).toMatchObject({ status: 'expired', tool_call: shortened });
  }, SOON);
});

test('old requests that were withdrawn or have expired are deleted; answered and pending ones are kept', async () => {
  const { acp } = await prompted();
  for (const id of ['answered', 'withdrawn', 'pending']) acp.requestPermission(id);
  const [answered, withdrawn, pending] = await reviews(3);
  await respond(answered!.id, { option_id: 'once' });
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 'withdrawn' } });
  await vi.waitFor(async () => expect((await get(withdrawn!.id)).status).toBe('cancelled'), SOON);
  await fixture.store.write(async (tx) => {
    const { num: _, ...row } = (await tx.get(
      tx.sql.selectFrom('reviews').selectAll().where('id', '=', withdrawn!.id),
    ))!;
    for (let n = 1; n <= limits.unanswered_requests_max; n++) {
      const expired = n % 2 === 0 && ({ status: 'expired', delivery: 'written' } as const);
      await tx.run(tx.sql.insertInto('reviews').values({ ...row, id: `rev_${n}`, ...expired }));
    }
    const session = (await findSession(tx, acp.session_id))!;
    const state = await loadAcpState(tx, session.num);
    await storeAcpState(tx, session.num, { ...state, received_count: limits.requests_per_cleanup - 1 });
  });
  const idsOf = async (status: Review['status']) => {
    const query = (reader: Reader) =>
      reader.all(
        reader.sql.selectFrom('reviews').select('id').where('status', '=', status).orderBy('num', 'desc'),
      );
    return (await fixture.store.read(query)).map(({ id }) => id);
  };
  const unanswered = async () => [...(await idsOf('cancelled')), ...(await idsOf('expired'))];
  // Any request counts.
  acp.send({ kind: 'request', id: 'next', method: 'fs/read_text_file', params: {} });
  await vi.waitFor(async () => expect(await unanswered()).toHaveLength(limits.unanswered_requests_max), SOON);
  expect(await unanswered()).not.toContain(withdrawn!.id);
  expect(await idsOf('pending')).toEqual([pending!.id]);
  expect(await idsOf('answered')).toEqual([answered!.id]);
  fixture.node.end(acp.session_id, 0);
  await vi.waitFor(async () => expect(await idsOf('pending')).toEqual([]), SOON);
  expect(await unanswered()).toHaveLength(limits.unanswered_requests_max);
});

test('requests with the same id are separate, until the agent withdraws the id', async () => {
  const { id, acp } = await prompted();
  acp.requestPermission(7, undefined, 'first');
  acp.requestPermission(7, undefined, 'second');
  acp.requestPermission('7', undefined, 'third');
  const [first, second, third] = await reviews(3);
  await respond(second!.id, { decision: 'deny' });
  expect(await acp.receive('response')).toMatchObject({ id: 7, result: selected('no') });
  expect((await get(first!.id)).status).toBe('pending');
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 7 } });
  expect(await acp.receive('response')).toMatchObject({ id: 7, error: { code: -32800 } });
  expect((await get(first!.id)).status).toBe('cancelled');
  await respond(third!.id, { decision: 'allow' });
  expect(await acp.receive('response')).toMatchObject({ id: '7', result: selected('once') });
  await fixture.expectSameState(id);
});

test('a request in an invalid form is rejected and reported', async () => {
  const { id, acp } = await prompted();
  acp.send({ kind: 'request', id: 1, method: 'session/request_permission', params: { options: 'yes' } });
  expect(await acp.receive('response')).toMatchObject({ id: 1, error: { code: -32602 } });
  expect(await fixture.errors(id)).toEqual(['permission_unreadable']);
  expect((await fixture.events(id)).some(({ review_id }) => review_id !== undefined)).toBe(false);
  await reviews(0);
  await fixture.expectSameState(id);
});

test('only the agent’s owner and root can see and answer reviews', async () => {
  const { id, session_id } = await fixture.create({ protocol: 'acp', start: true }, null, BEN);
  const acp = new ScriptedAcp(fixture, session_id!);
  await acp.openSession();
  acp.requestPermission(1);
  const [review] = await reviews(1);
  const eve: Caller = { ...BEN, user_id: 'usr_e', username: 'eve' };
  expect((await fixture.reviews.list(eve, {}, {})).items).toEqual([]);
  await expect(fixture.reviews.get(eve, review!.id)).rejects.toThrow('permission review not found');
  await expect(respond(review!.id, { decision: 'allow' }, eve)).rejects.toThrow(
    'permission review not found',
  );
  await expect(respond('rev_x', { decision: 'allow' })).rejects.toThrow('permission review not found');
  expect(
    (await fixture.reviews.list(BEN, { status: 'pending', agent_id: id }, { limit: 1 })).items,
  ).toHaveLength(1);
  expect((await fixture.reviews.list(BEN, { status: 'answered' }, {})).items).toEqual([]);
  expect((await respond(review!.id, { decision: 'allow' }, BEN)).answered_by).toBe('ben');
  expect((await fixture.reviews.list(BEN, { status: 'answered' }, {})).items).toHaveLength(1);
});

test('lists are newest first, in pages', async () => {
  const { acp } = await prompted();
  for (let n = 0; n < 5; n++) acp.requestPermission(n);
  const ids = (await reviews(5)).map(({ id }) => id).toReversed();
  const first = await fixture.reviews.list(ANA, {}, { limit: 3 });
  expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 3));
  const second = await fixture.reviews.list(ANA, {}, { limit: 3, cursor: first.next_cursor });
  expect(second.items.map(({ id }) => id)).toEqual(ids.slice(3));
  expect(second.next_cursor).toBeUndefined();
});
