/** Messages that cost far more to handle than to write, which an agent can send at any rate. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { writeMessage } from '../../acp/message.ts';
import { limits } from '../../events/limits.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.end();
});

const options = [{ optionId: 'once', name: 'Allow', kind: 'allow_once' }];
const request = (id: number) =>
  writeMessage({
    ...{ kind: 'request', id, method: 'session/request_permission' },
    params: { sessionId: 'acp-1', toolCall: { toolCallId: `c${id}` }, options },
  });
const withdrawal = (id: number) =>
  writeMessage({ kind: 'notification', method: '$/cancel_request', params: { requestId: id } });
const reviews = async () => (await fixture.reviews.list(ANA, {}, { limit: 200 })).items;

test.each([
  ['acp_transaction_ms', 0],
  ['acp_transaction_messages_max', 1],
] as const)('others do not wait for a backlog of requests, because of %s', async (limit, value) => {
  vi.spyOn(limits, 'acp_transaction_ms', 'get').mockReturnValue(60_000 as never);
  vi.spyOn(limits, limit, 'get').mockReturnValue(value as never);
  vi.spyOn(limits, 'acp_pause_factor', 'get').mockReturnValue(0 as never);
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  const pairs = Array.from({ length: 100 }, (_, n) => `${request(n)}${withdrawal(n)}`);
  acp.write(pairs.join(''));
  await vi.waitFor(async () => expect(await reviews()).not.toEqual([]), SOON);
  await fixture.create({ name: 'another' });
  expect((await reviews()).length).toBeLessThan(pairs.length);
  await vi.waitFor(async () => {
    const all = await reviews();
    expect(all.filter(({ status }) => status === 'cancelled')).toHaveLength(pairs.length);
  }, SOON);
  await fixture.expectSameState(id);
});

test('requests of an agent that is being stopped are cancelled, and ask nobody', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  acp.write(request(1));
  await vi.waitFor(async () => expect(await reviews()).toHaveLength(1), SOON);
  const stop = fixture.node.stop.bind(fixture.node);
  fixture.node.stop = async (session_id) => {
    const params = { mode: 'form', message: 'Name?', requestedSchema: { type: 'object', properties: {} } };
    const form = writeMessage({
      ...{ kind: 'request', id: 3, method: 'elicitation/create' },
      params: { sessionId: 'acp-1', ...params },
    });
    acp.write(`${request(2)}${form}${withdrawal(2)}`);
    return stop(session_id);
  };
  expect(await fixture.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled', pending_reviews: 0 });
  expect((await reviews()).map(({ status }) => status)).toEqual(['cancelled']);
  expect((await fixture.elicitations.list(ANA, {}, {})).items).toEqual([]);
  const answers = (await fixture.events(id)).flatMap((event) =>
    event.direction === 'to_agent' && [2, 3].includes(event.response_to as number) ? event.payload : [],
  );
  expect(answers).toMatchObject([
    { result: { outcome: { outcome: 'cancelled' } } },
    { result: { action: 'cancel' } },
  ]);
  await fixture.expectSameState(id);
});
