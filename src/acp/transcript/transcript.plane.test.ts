/** The page reads exactly what the service writes into an agent's log: these tests create no events themselves. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { bodyText } from './parts.ts';
import { itemsOf } from './testing.ts';
import { Transcript, type View } from './transcript.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

async function viewOf(agent_id: string): Promise<View> {
  const transcript = new Transcript();
  transcript.append(await fixture.events(agent_id));
  return transcript.view;
}

async function until(agent_id: string, seen: (view: View) => void): Promise<void> {
  await vi.waitFor(async () => seen(await viewOf(agent_id)), SOON);
}

async function ends(acp: ScriptedAcp, stopReason: string): Promise<void> {
  const { id } = await acp.receive('request', 'session/prompt');
  acp.send({ kind: 'response', id, result: { stopReason } });
}

const agentMessage = (text: string) => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
});

test('shows a turn with an answered and a withdrawn permission request', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession({ agentInfo: { name: 'scripted', version: '1' } });
  const { id: prompt_id } = await acp.receive('request', 'session/prompt');
  acp.sendUpdate(agentMessage('I will'));
  acp.sendUpdate({ sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'Edit', kind: 'edit' });
  acp.requestPermission('q1');
  await until(id, (view) => expect(itemsOf(view, 'permission')).toHaveLength(1));
  const [request] = itemsOf(await viewOf(id), 'permission');
  await fixture.reviews.respond(ANA, request!.review_id, { option_id: 'once' }, null);
  await acp.receive('response');
  acp.requestPermission('q2');
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 'q2' } });
  await acp.receive('response');
  acp.send({ kind: 'response', id: prompt_id, result: { stopReason: 'refusal' } });
  await until(id, (view) => expect(view.working).toBe(false));
  const view = await viewOf(id);
  expect(view.items.map(({ kind }) => kind)).toEqual([
    'status',
    'user_message',
    'agent_message',
    'tool',
    'permission',
    'permission',
    'stop',
  ]);
  expect(itemsOf(view, 'permission')).toMatchObject([
    { outcome: { type: 'selected', option: { option_id: 'once', name: 'Allow' } }, answered_by: 'ana' },
    { outcome: { type: 'withdrawn' } },
  ]);
  expect(itemsOf(view, 'tool')[0]?.status).toBe('unfinished');
  expect(itemsOf(view, 'user_message')[0]).toMatchObject({ prompt_id, turn: 1 });
  expect(view.turns).toMatchObject([{ prompt_id, stop_reason: 'refusal' }]);
  expect(view.agent).toEqual({ name: 'scripted', title: null, version: '1' });
});

test('shows a turn that is cancelled while a request is pending', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'go' });
  await acp.openSession();
  const { id: prompt_id } = await acp.receive('request', 'session/prompt');
  acp.sendUpdate({ sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'Edit', status: 'in_progress' });
  acp.requestPermission('q1');
  await until(id, (view) => expect(itemsOf(view, 'permission')).toHaveLength(1));
  await fixture.prompting.cancel(ANA, id);
  const stopping = await viewOf(id);
  expect(stopping).toMatchObject({ working: true, stopping: true });
  expect(itemsOf(stopping, 'tool')[0]?.status).toBe('cancelled');
  expect(itemsOf(stopping, 'permission')[0]).toMatchObject({
    outcome: { type: 'cancelled' },
    answered_by: 'ana',
  });
  acp.send({ kind: 'response', id: prompt_id, result: { stopReason: 'cancelled' } });
  await until(id, (view) => expect(itemsOf(view, 'stop')[0]?.reason).toBe('cancelled'));
});

test('shows replayed messages once when an agent restarts after ending during its turn', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'one' });
  await acp.openSession();
  acp.sendUpdate(agentMessage('first answer'));
  await ends(acp, 'end_turn');
  await fixture.prompting.prompt(ANA, id, [{ type: 'text', text: 'two' }], null);
  await acp.receive('request', 'session/prompt');
  fixture.node.end(acp.session_id, 1);
  await fixture.until(id, 'failed');
  const { session_id } = await fixture.agents.start(ANA, id, null);
  const again = new ScriptedAcp(fixture, session_id!);
  await again.initialize({ agentCapabilities: { loadSession: true } });
  const { id: load_id } = await again.receive('request', 'session/load');
  again.sendUpdate(agentMessage('first answer'));
  again.send({ kind: 'response', id: load_id, result: {} });
  again.sendUpdate(agentMessage('here again'));
  await until(id, (view) => expect(itemsOf(view, 'agent_message')).toHaveLength(2));
  const view = await viewOf(id);
  expect(itemsOf(view, 'agent_message').map(({ body }) => bodyText(body))).toEqual([
    'first answer',
    'here again',
  ]);
  expect(view.turns.map(({ stop_reason }) => stop_reason)).toEqual(['end_turn', null]);
  expect(view.sessions.map((session) => session.session_id)).toEqual([acp.session_id, session_id]);
  expect(itemsOf(view, 'notice').map(({ code }) => code)).toEqual(['turn_lost']);
  expect(view.working).toBe(false);
});
