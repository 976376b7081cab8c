/** ACP version 2, a preview: how it is negotiated, and what the service sends in it. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { version } from '../../base/version.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import { lastMessage } from '../runs/last-message.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
  fixture.acp_version = 2;
});
afterEach(() => fixture.end());

const hello = (session: object = { mcp: { stdio: {} } }) => ({
  protocolVersion: 2,
  info: { name: 'a', version: '1' },
  capabilities: { session },
});
const mode = (currentValue: string, values = ['default', 'auto']) => ({
  ...{ configId: 'how', name: 'Mode', category: 'mode', type: 'select', currentValue },
  options: values.map((value) => ({ value, name: value })),
});
const until = (id: string, wanted: object) =>
  vi.waitFor(async () => expect(await fixture.get(id)).toMatchObject(wanted), SOON);
const claude = () => startAcp(fixture, { preset: 'claude', command: 'true', prompt: 'Go on.' });

const client = `{"name":"svc","title":"svc","version":"${version}"}`;
const elicitation = '{"form":{},"url":{}}';
const v1 = `"clientInfo":${client},"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"elicitation":${elicitation},"session":{"configOptions":{"boolean":{}}},"subagents":{}}`;
const initialize = (session_id: string, params: string) =>
  `{"jsonrpc":"2.0","id":"${session_id}.1","method":"initialize","params":{${params}}}`;

test('an agent is offered only version 1 by default', async () => {
  fixture.acp_version = 1;
  const { acp } = await startAcp(fixture);
  await acp.receive('request', 'initialize');
  expect(acp.lines).toEqual([initialize(acp.session_id, `"protocolVersion":1,${v1}`)]);
});

test('an agent that is offered version 2 may choose version 1', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'hello' });
  await acp.openSession();
  expect(acp.lines[0]).toBe(
    initialize(
      acp.session_id,
      `"protocolVersion":2,"info":${client},"capabilities":{"elicitation":${elicitation}},${v1}`,
    ),
  );
  expect(await fixture.prompting.config(ANA, id)).toMatchObject({ protocol_version: 1 });
  const { id: prompt_id } = await acp.receive('request', 'session/prompt');
  acp.send({ kind: 'response', id: prompt_id, result: { stopReason: 'end_turn' } });
  await until(id, { activity: 'idle' });
  await fixture.expectSameState(id);
});

test('sets the asking mode as an option before the first prompt', async () => {
  const { id, acp } = await claude();
  await acp.openSession(hello(), { configOptions: [mode('auto')] });
  const request = await acp.receive('request', 'session/set_config_option');
  expect(request.params).toEqual({ sessionId: 'acp-1', configId: 'how', type: 'id', value: 'default' });
  await until(id, { asks: 'acts' });
  expect(acp.lines).toHaveLength(3);
  acp.send({ kind: 'response', id: request.id, result: { configOptions: [mode('default')] } });
  await acp.receive('request', 'session/prompt');
  await until(id, { asks: 'unknown', permission_mode: 'ask' });
  expect(await fixture.errors(id)).toEqual([]);
  await fixture.expectSameState(id);
});

test('reports an agent without a mode option as lacking the asking mode', async () => {
  const { id, acp } = await claude();
  await acp.openSession(hello(), {});
  await acp.receive('request', 'session/prompt');
  expect(await fixture.errors(id)).toEqual(['permission_mode_missing']);
});

test('a team member is offered its tools if the agent can start such servers itself', async () => {
  fixture.actor_token = 'ses.mac';
  const rows = await addTeam(fixture.store, 'x', specOf(['boss', 'other']));
  const opening = async (member: string, session: object) => {
    const { id } = await fixture.create({ protocol: 'acp' });
    await joinTeam(fixture.store, id, rows, member);
    const { session_id } = await fixture.agents.start(ANA, id, null);
    const acp = new ScriptedAcp(fixture, session_id!);
    await acp.initialize(hello(session));
    return (await acp.receive('request', 'session/new')).params;
  };
  const server = { name: 'svc', command: '/usr/bin/env', args: ['svc', 'mcp', '--actor'], env: [] };
  expect(await opening('boss', { mcp: { stdio: {} } })).toEqual({
    cwd: fixture.folder,
    mcpServers: [{ type: 'stdio', ...server }],
  });
  expect(await opening('other', {})).toEqual({ cwd: fixture.folder, mcpServers: [] });
});

test('the last message of a turn has the text that the agent finally sent', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'hello' });
  await acp.openSession(hello());
  const prompt = await acp.receive('request', 'session/prompt');
  const text = (content: string) => ({ type: 'text', text: content });
  const chunk = (messageId: string, content: string) =>
    acp.sendUpdate({ sessionUpdate: 'agent_message_chunk', messageId, content: text(content) });
  acp.sendUpdate({ sessionUpdate: 'user_message', messageId: 'u', content: [text('hello')] });
  acp.send({ kind: 'response', id: prompt.id, result: { messageId: 'u' } });
  acp.sendUpdate({ sessionUpdate: 'state_update', state: 'running' });
  chunk('m1', 'I look.');
  acp.sendUpdate({ sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'completed' });
  chunk('m2', 'A draft');
  acp.sendUpdate({
    sessionUpdate: 'agent_message',
    messageId: 'm2',
    content: [text('It is '), text('done')],
  });
  chunk('m2', '.');
  acp.sendUpdate({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'end_turn' });
  chunk('m3', 'By the way.');
  await until(id, { activity: 'idle' });
  await vi.waitFor(
    async () => expect(JSON.stringify(await fixture.events(id))).toContain('By the way.'),
    SOON,
  );
  expect(await lastMessage(fixture.log, id, String(prompt.id))).toBe('It is done.');
  const marks = (await fixture.events(id)).flatMap(
    ({ accepted, turn_ended }) => accepted ?? turn_ended ?? [],
  );
  expect(marks).toEqual([true, { prompt_id: prompt.id, stop_reason: 'end_turn' }]);
  await fixture.expectSameState(id);
});

test('a withdrawn and an unreadable request are answered as in version 1', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'hello' });
  await acp.openSession(hello());
  await acp.receive('request', 'session/prompt');
  const method = 'session/request_permission';
  const options = [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }];
  acp.send({ kind: 'request', id: 1, method, params: { sessionId: 'acp-1', title: 'May I?', options } });
  await until(id, { pending_reviews: 1 });
  acp.send({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  expect(await acp.receive('response')).toMatchObject({ id: 1, error: { code: -32800 } });
  acp.send({ kind: 'request', id: 2, method, params: { sessionId: 'acp-1', title: 'May I?' } });
  expect(await acp.receive('response')).toMatchObject({ id: 2, error: { code: -32602 } });
  await until(id, { pending_reviews: 0 });
  await fixture.expectSameState(id);
});
