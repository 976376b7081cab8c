/** Sub-agents of a scripted agent: messages and questions are attributed to the right one. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { EventRecord } from '../../core/event.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { type ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import type { Review } from '../reviews/rules.ts';
import { lastMessage } from '../runs/last-message.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }] };
const announcement = {
  ...{ sessionUpdate: 'subagent_update', sessionId: 'child-1', title: 'explorer' },
  ...{ description: 'Find the test', capabilities: { cancel: {} }, state: { state: 'running' } },
};
const words = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });

/** An agent with an open turn and an announced sub-agent. */
async function delegated(): Promise<{ id: string; acp: ScriptedAcp; prompt_id: string }> {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession({}, { modes });
  const prompt = await acp.receive('request', 'session/prompt');
  acp.sendUpdate(announcement);
  return { id, acp, prompt_id: String(prompt.id) };
}

function pending(count: number): Promise<Review[]> {
  return vi.waitFor(async () => {
    const { items } = await fixture.reviews.list(ANA, { status: 'pending' }, {});
    expect(items).toHaveLength(count);
    return items.toReversed();
  }, SOON);
}

function events(id: string, wanted: (event: EventRecord) => boolean): Promise<EventRecord> {
  return vi.waitFor(async () => {
    const found = (await fixture.events(id)).find(wanted);
    expect(found).toBeDefined();
    return found!;
  }, SOON);
}

test('a sub-agent’s messages, mode and plan are separate, even after a restart of the plane', async () => {
  const { id, acp, prompt_id } = await delegated();
  acp.sendUpdate(words('mine'));
  acp.sendUpdate(words('its'), 'child-1');
  acp.sendUpdate({ sessionUpdate: 'current_mode_update', currentModeId: 'yolo' }, 'child-1');
  await fixture.close();
  await fixture.open();
  acp.sendUpdate({ sessionUpdate: 'plan', entries: [{ content: 'x', status: 'pending' }] }, 'child-1');
  acp.sendUpdate({ ...announcement, state: { state: 'idle', stopReason: 'end_turn' } });
  acp.sendUpdate({ sessionUpdate: 'current_mode_update', currentModeId: 'yolo' }, 'made-up');
  expect(await events(id, ({ unknown_session }) => unknown_session === true)).toMatchObject({
    subagent: 'made-up',
  });
  expect(await fixture.prompting.config(ANA, id)).toMatchObject({
    modes: { currentModeId: 'ask' },
    plan: [],
    subagents: [
      {
        ...{ id: 'child-1', has_session: true, parent_id: null, name: 'explorer' },
        ...{ description: 'Find the test', status: 'idle', stop_reason: 'end_turn' },
      },
    ],
  });
  const updates = (await fixture.events(id)).flatMap(({ payload, subagent }) => {
    const update = (payload as { params?: { update?: { sessionUpdate: string } } } | null)?.params?.update;
    return update ? [[update.sessionUpdate, subagent]] : [];
  });
  expect(updates).toEqual([
    ['subagent_update', undefined],
    ['agent_message_chunk', undefined],
    ['agent_message_chunk', 'child-1'],
    ['current_mode_update', 'child-1'],
    ['plan', 'child-1'],
    ['subagent_update', undefined],
    ['current_mode_update', 'made-up'],
  ]);
  expect((await fixture.get(id)).activity).toBe('working');
  acp.send({ kind: 'response', id: prompt_id, result: { stopReason: 'end_turn' } });
  await vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('idle'), SOON);
  await fixture.expectSameState(id);
});

test('a review names the requesting sub-agent, and its answer goes to that request', async () => {
  const { id, acp } = await delegated();
  acp.requestPermission('of-main');
  acp.requestPermission('of-child', undefined, 'Write', { sessionId: 'child-1' });
  acp.requestPermission('of-call', undefined, 'Run', {
    toolCall: { toolCallId: 'c9', title: 'Run', _meta: { claudeCode: { parentToolUseId: 'task-1' } } },
  });
  acp.requestPermission('of-nobody', undefined, 'Delete', { sessionId: 'made-up' });
  const reviews = await pending(4);
  expect(reviews.map(({ subagent }) => subagent)).toEqual([
    null,
    { id: 'child-1', name: 'explorer', unknown_session: false },
    { id: 'task-1', name: null, unknown_session: false },
    { id: 'made-up', name: null, unknown_session: true },
  ]);
  await fixture.close();
  await fixture.open();
  for (const review of reviews.toReversed()) {
    expect(await fixture.reviews.get(ANA, review.id)).toMatchObject({ subagent: review.subagent });
    await fixture.reviews.respond(ANA, review.id, { decision: 'allow' }, null);
  }
  const answered = [];
  for (const _ of reviews) answered.push((await acp.receive('response')).id);
  expect(answered).toEqual(['of-nobody', 'of-call', 'of-child', 'of-main']);
  await fixture.expectSameState(id);
});

test('cancelling the turn cancels the main session and its sub-agents’ requests', async () => {
  const { acp, id } = await delegated();
  acp.requestPermission('of-child', undefined, 'Write', { sessionId: 'child-1' });
  await pending(1);
  await fixture.prompting.cancel(ANA, id);
  expect(await acp.receive('response')).toMatchObject({
    id: 'of-child',
    result: { outcome: { outcome: 'cancelled' } },
  });
  expect(await acp.receive('notification', 'session/cancel')).toMatchObject({
    params: { sessionId: 'acp-1' },
  });
  await pending(0);
});

test('a sub-agent’s last message is not the agent’s', async () => {
  const { id, acp, prompt_id } = await delegated();
  acp.sendUpdate({ sessionUpdate: 'session_message', messageId: 'm', content: [] });
  acp.sendUpdate(words('All '));
  acp.sendUpdate(words('from the side'), 'child-1');
  acp.sendUpdate({ sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'x' }, 'child-1');
  acp.sendUpdate(words('done.'));
  acp.sendUpdate(words('from nowhere'), 'made-up');
  acp.send({ kind: 'response', id: prompt_id, result: { stopReason: 'end_turn' } });
  await vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe('idle'), SOON);
  expect(await lastMessage(fixture.log, id, prompt_id)).toBe('All done.');
});

test('names of sub-agents are redacted', async () => {
  const { id, acp } = await startAcp(fixture, { env: { KEY: 'hunter-hunter' }, prompt: 'go' });
  await acp.openSession();
  await acp.receive('request', 'session/prompt');
  acp.sendUpdate({ ...announcement, title: 'reads hunter-hunter' });
  acp.requestPermission('q', undefined, 'Write', { sessionId: 'child-1' });
  const [review] = await pending(1);
  expect(review!.subagent!.name).toBe('reads [redacted:KEY]');
  expect(JSON.stringify(await fixture.events(id))).not.toContain('hunter-hunter');
});
