/** Messages for which the code that reads them throws, with a scripted agent. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Message } from '../../acp/message.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { startAcp } from '../../testing/scripted-acp.ts';
import { AcpTransaction } from '../agents/acp-transaction.ts';

/** The same message, which cannot be folded: its parameters cannot be read the first time. */
function unreadable(message: Message): Message {
  let reads = 0;
  const get = () => {
    if (reads++ === 0) throw new TypeError('x is not a function');
    return 'params' in message ? message.params : undefined;
  };
  return Object.defineProperty({ ...message }, 'params', { get });
}

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  const { receive } = AcpTransaction.prototype;
  vi.spyOn(AcpTransaction.prototype, 'receive').mockImplementation(function (this: AcpTransaction, frame) {
    const is_odd = frame.text?.includes('odd') ?? false;
    return receive.call(this, is_odd ? { ...frame, message: unreadable(frame.message) } : frame);
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.end();
});

const untilIdle = (id: string) =>
  vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('idle'), SOON);

test('a message that cannot be read is in the log with an error, and the conversation continues', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  await untilIdle(id);
  acp.sendUpdate({ sessionUpdate: 'session_info_update', title: 'odd' });
  const { prompt_id } = await fixture.prompting.prompt(ANA, id, [{ type: 'text', text: 'hello' }], null);
  expect(await acp.respond('session/prompt', { result: { stopReason: 'end_turn' } })).toMatchObject({
    id: prompt_id,
  });
  await untilIdle(id);
  const events = await fixture.events(id);
  const at = events.findIndex(({ code }) => code === 'message_unreadable');
  expect(events[at - 1]).toMatchObject({
    type: 'acp_event',
    method: 'session/update',
    payload: { params: { update: { title: 'odd' } } },
  });
  expect(await fixture.errors(id)).toEqual(['message_unreadable']);
});

test('the agent gets an error as the answer to a request that cannot be read', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  await untilIdle(id);
  acp.requestPermission(7, undefined, 'odd');
  expect(await acp.receive('response')).toEqual({
    kind: 'response',
    id: 7,
    error: { code: -32603, message: 'the message could not be read' },
  });
  acp.requestPermission(8);
  await vi.waitFor(async () => expect((await fixture.get(id)).pending_reviews).toBe(1), SOON);
});
