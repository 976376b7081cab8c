/** The mode in which an agent asks before it acts, with a scripted agent. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import type { CreateAgent } from '../agents/creation.ts';
import type { Agent } from '../agents/rules.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const modes = (currentModeId: string, ids = ['default', 'auto', 'plan']) => ({
  modes: { currentModeId, availableModes: ids.map((id) => ({ id, name: id })) },
});
const refusal = { code: -32603, message: 'not now' };
const claude = (more: Partial<CreateAgent> = {}) =>
  startAcp(fixture, { preset: 'claude', command: 'true', prompt: 'Go on.', ...more });
const until = (id: string, wanted: Partial<Agent>) =>
  vi.waitFor(async () => expect(await fixture.get(id)).toMatchObject(wanted), SOON);
const call = (toolCallId: string, status: string) => ({
  ...{ sessionUpdate: 'tool_call', toolCallId, status },
  ...{ kind: 'edit', title: 'Write a.txt' },
});

test('sets the asking mode, and waits for its confirmation, before the first prompt of a new session', async () => {
  const { id, acp } = await claude();
  await acp.openSession({}, modes('auto'));
  const request = await acp.receive('request', 'session/set_mode');
  expect(request.params).toEqual({ sessionId: 'acp-1', modeId: 'default' });
  await until(id, { asks: 'acts' });
  await fixture.advanceClock(1_000);
  expect(acp.lines).toHaveLength(3);
  acp.send({ kind: 'response', id: request.id, result: {} });
  await acp.receive('request', 'session/prompt');
  await until(id, { asks: 'unknown', permission_mode: 'ask' });
  expect(await fixture.errors(id)).toEqual([]);
  await fixture.expectSameState(id);
});

test('sets the mode again in a resumed session, whatever mode the session reports', async () => {
  const { id, acp } = await claude({ prompt: null });
  await acp.openSession({}, modes('default'));
  await until(id, { activity: 'idle' });
  fixture.node.end(acp.session_id, 0);
  await fixture.until(id, 'completed');
  for (const offered of [modes('auto'), {}]) {
    const { session_id } = await fixture.agents.start(ANA, id, null);
    const next = new ScriptedAcp(fixture, session_id!);
    await next.initialize({ agentCapabilities: { sessionCapabilities: { resume: {} } } });
    await next.respond('session/resume', { result: offered });
    const request = await next.respond('session/set_mode', { result: {} });
    expect(request.params).toEqual({ sessionId: 'acp-1', modeId: 'default' });
    await until(id, { activity: 'idle', asks: 'unknown' });
    fixture.node.end(session_id!, 0);
    await fixture.until(id, 'completed');
  }
});

test('sets an option instead of a mode if the agent has one', async () => {
  const { id, acp } = await claude();
  const options = ['default', 'auto'].map((value) => ({ value, name: value }));
  const mode = { id: 'how', name: 'Mode', category: 'mode', type: 'select', options };
  await acp.openSession({}, { configOptions: [{ ...mode, currentValue: 'auto' }] });
  const result = { configOptions: [{ ...mode, currentValue: 'default' }] };
  const request = await acp.respond('session/set_config_option', { result });
  expect(request.params).toEqual({ sessionId: 'acp-1', configId: 'how', value: 'default' });
  await acp.receive('request', 'session/prompt');
  await until(id, { asks: 'unknown' });
});

test('an agent that may act without asking starts in its own mode, which the record shows', async () => {
  const { id, acp } = await claude({ permission_mode: 'agent' });
  await acp.openSession({}, modes('auto'));
  await acp.receive('request', 'session/prompt');
  await until(id, { permission_mode: 'agent', asks: 'acts' });
});

test('reports an error if the agent rejects or does not offer the mode', async () => {
  const refusing = await claude();
  await refusing.acp.openSession({}, modes('auto'));
  await refusing.acp.respond('session/set_mode', { error: refusal });
  await refusing.acp.receive('request', 'session/prompt');
  expect(await fixture.errors(refusing.id)).toEqual(['permission_mode_refused']);
  await until(refusing.id, { asks: 'acts' });

  const without = await claude();
  await without.acp.openSession({}, modes('auto', ['auto', 'plan']));
  await without.acp.receive('request', 'session/prompt');
  expect(await fixture.errors(without.id)).toEqual(['permission_mode_missing']);
  await until(without.id, { asks: 'acts' });
});

test('reports an agent that does not confirm the mode, and sends its prompt once it does', async () => {
  const { id, acp } = await claude();
  await acp.openSession({}, modes('auto'));
  const request = await acp.receive('request', 'session/set_mode');
  await fixture.advanceClock(limits.acp_silent_ms);
  await vi.waitFor(
    async () => expect(await fixture.errors(id)).toEqual(['permission_mode_unconfirmed']),
    SOON,
  );
  expect(acp.lines).toHaveLength(3);
  acp.send({ kind: 'response', id: request.id, result: {} });
  await acp.receive('request', 'session/prompt');
});

test('after a restart between the mode and its confirmation, sends neither twice', async () => {
  const { id, acp } = await claude();
  await acp.openSession({}, modes('auto'));
  const request = await acp.receive('request', 'session/set_mode');
  await fixture.close();
  await fixture.open();
  acp.send({ kind: 'response', id: request.id, result: {} });
  await acp.receive('request', 'session/prompt');
  await until(id, { activity: 'working' });
  expect(acp.lines).toHaveLength(4);
  await fixture.expectSameState(id);
});

test('keeps a mode that a user chooses later, and records its meaning', async () => {
  const { id, acp } = await claude({ prompt: null });
  await acp.openSession({}, modes('default'));
  await until(id, { activity: 'idle' });
  const chosen = fixture.prompting.configure(ANA, id, { mode_id: 'auto' });
  await acp.respond('session/set_mode', { result: {} });
  await chosen;
  await until(id, { asks: 'acts' });
  await fixture.prompting.prompt(ANA, id, [{ type: 'text', text: 'Go on.' }], null);
  await acp.receive('request', 'session/prompt');
});

test('the record keeps what was observed until the next session starts', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'Go on.' });
  await acp.openSession();
  const prompt = await acp.receive('request', 'session/prompt');
  await until(id, { asks: 'unknown' });
  acp.requestPermission('p1');
  await until(id, { asks: 'asks', activity: 'needs_you' });
  acp.sendUpdate(call('c2', 'pending'));
  acp.sendUpdate(call('c2', 'completed'));
  await until(id, { asks: 'acts' });
  acp.send({ kind: 'response', id: prompt.id, result: { stopReason: 'end_turn' } });
  fixture.node.end(acp.session_id, 0);
  await fixture.until(id, 'completed');
  expect((await fixture.get(id)).asks).toBe('acts');
  await fixture.expectSameState(id);
  await fixture.agents.start(ANA, id, null);
  await until(id, { asks: 'unknown' });
});

test('a tool call without a request counts as permitted after a permanent permission', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'Go on.' });
  await acp.openSession();
  acp.requestPermission('p1');
  const [review] = await vi.waitFor(async () => {
    const found = await fixture.reviews.list(ANA, { agent_id: id }, {});
    expect(found.items).toHaveLength(1);
    return found.items;
  }, SOON);
  await fixture.reviews.respond(ANA, review!.id, { option_id: 'always' }, null);
  acp.sendUpdate(call('c2', 'completed'));
  acp.sendUpdate({ sessionUpdate: 'session_info_update', title: 'later' });
  await vi.waitFor(
    async () => expect(await fixture.prompting.config(ANA, id)).toMatchObject({ title: 'later' }),
    SOON,
  );
  expect((await fixture.get(id)).asks).toBe('asks');
});

test('sets variables that make an agent ask, unless its own variables or its permission mode say otherwise', async () => {
  const started = async (more: Partial<CreateAgent>) => {
    const { session_id } = await fixture.create({ preset: 'goose', command: 'true', start: true, ...more });
    return fixture.node.launches.get(session_id!)!.env.GOOSE_MODE;
  };
  expect(await started({})).toBe('approve');
  expect(await started({ env: { GOOSE_MODE: 'smart_approve' } })).toBe('smart_approve');
  expect(await started({ permission_mode: 'agent' })).toBeUndefined();
});

test('the permission mode of an agent can be changed while it is not running', async () => {
  const { id, acp } = await claude();
  const change = () => fixture.agents.update(ANA, id, { permission_mode: 'agent' });
  await expect(change()).rejects.toThrow('running');
  fixture.node.end(acp.session_id, 0);
  await fixture.until(id, 'completed');
  expect(await change()).toMatchObject({ permission_mode: 'agent' });
});
