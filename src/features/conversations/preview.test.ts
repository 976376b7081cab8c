/** ACP version 2, a preview: how it is negotiated, and what the service sends in it. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { version } from '../../base/version.ts';
import { ANA, LivesRoom, SOON } from '../../testing/lives.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import { lastMessage } from '../runs/last-message.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
  room.acp_version = 2;
});
afterEach(() => room.end());

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
  vi.waitFor(async () => expect(await room.get(id)).toMatchObject(wanted), SOON);
const claude = () => startAcp(room, { preset: 'claude', command: 'true', prompt: 'Go on.' });

const client = `{"name":"svc","title":"svc","version":"${version}"}`;
const elicitation = '{"form":{},"url":{}}';
const v1 = `"clientInfo":${client},"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"elicitation":${elicitation},"session":{"configOptions":{"boolean":{}}},"subagents":{}}`;
const initialize = (session_id: string, params: string) =>
  `{"jsonrpc":"2.0","id":"${session_id}.1","method":"initialize","params":{${params}}}`;

test('an agent is offered only version 1 by default', async () => {
  room.acp_version = 1;
  const { acp } = await startAcp(room);
  await acp.hears('request', 'initialize');
  expect(acp.lines).toEqual([initialize(acp.session_id, `"protocolVersion":1,${v1}`)]);
});

test('an agent that is offered version 2 may choose version 1', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'hello' });
  await acp.opens();
  expect(acp.lines[0]).toBe(
    initialize(
      acp.session_id,
      `"protocolVersion":2,"info":${client},"capabilities":{"elicitation":${elicitation}},${v1}`,
    ),
  );
  expect(await room.prompting.config(ANA, id)).toMatchObject({ protocol_version: 1 });
  const { id: prompt_id } = await acp.hears('request', 'session/prompt');
  acp.says({ kind: 'response', id: prompt_id, result: { stopReason: 'end_turn' } });
  await until(id, { activity: 'idle' });
  await room.expectTrue(id);
});

test('sets the asking mode as an option before the first prompt', async () => {
  const { id, acp } = await claude();
  await acp.opens(hello(), { configOptions: [mode('auto')] });
  const request = await acp.hears('request', 'session/set_config_option');
  expect(request.params).toEqual({ sessionId: 'acp-1', configId: 'how', type: 'id', value: 'default' });
  await until(id, { asks: 'acts' });
  expect(acp.lines).toHaveLength(3);
  acp.says({ kind: 'response', id: request.id, result: { configOptions: [mode('default')] } });
  await acp.hears('request', 'session/prompt');
  await until(id, { asks: 'unknown', permission_mode: 'ask' });
  expect(await room.errors(id)).toEqual([]);
  await room.expectTrue(id);
});

test('reports an agent without a mode option as lacking the asking mode', async () => {
  const { id, acp } = await claude();
  await acp.opens(hello(), {});
  await acp.hears('request', 'session/prompt');
  expect(await room.errors(id)).toEqual(['permission_mode_missing']);
});

test('a team member is offered its tools if the agent can start such servers itself', async () => {
  room.actor_token = 'ses.mac';
  const rows = await addTeam(room.store, 'x', specOf(['boss', 'other']));
  const opening = async (member: string, session: object) => {
    const { id } = await room.create({ protocol: 'acp' });
    await joinTeam(room.store, id, rows, member);
    const { session_id } = await room.agents.start(ANA, id, null);
    const acp = new ScriptedAcp(room, session_id!);
    await acp.introduces(hello(session));
    return (await acp.hears('request', 'session/new')).params;
  };
  const server = { name: 'svc', command: '/usr/bin/env', args: ['svc', 'mcp', '--actor'], env: [] };
  expect(await opening('boss', { mcp: { stdio: {} } })).toEqual({
    cwd: room.folder,
    mcpServers: [{ type: 'stdio', ...server }],
  });
  expect(await opening('other', {})).toEqual({ cwd: room.folder, mcpServers: [] });
});

test('the last message of a turn has the text that the agent finally sent', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'hello' });
  await acp.opens(hello());
  const prompt = await acp.hears('request', 'session/prompt');
  const text = (content: string) => ({ type: 'text', text: content });
  const chunk = (messageId: string, content: string) =>
    acp.updates({ sessionUpdate: 'agent_message_chunk', messageId, content: text(content) });
  acp.updates({ sessionUpdate: 'user_message', messageId: 'u', content: [text('hello')] });
  acp.says({ kind: 'response', id: prompt.id, result: { messageId: 'u' } });
  acp.updates({ sessionUpdate: 'state_update', state: 'running' });
  chunk('m1', 'I look.');
  acp.updates({ sessionUpdate: 'tool_call_update', toolCallId: 'c', status: 'completed' });
  chunk('m2', 'A draft');
  acp.updates({ sessionUpdate: 'agent_message', messageId: 'm2', content: [text('It is '), text('done')] });
  chunk('m2', '.');
  acp.updates({ sessionUpdate: 'state_update', state: 'idle', stopReason: 'end_turn' });
  chunk('m3', 'By the way.');
  await until(id, { activity: 'idle' });
  await vi.waitFor(async () => expect(JSON.stringify(await room.events(id))).toContain('By the way.'), SOON);
  expect(await lastMessage(room.log, id, String(prompt.id))).toBe('It is done.');
  const marks = (await room.events(id)).flatMap(({ accepted, turn_ended }) => accepted ?? turn_ended ?? []);
  expect(marks).toEqual([true, { prompt_id: prompt.id, stop_reason: 'end_turn' }]);
  await room.expectTrue(id);
});

test('a withdrawn and an unreadable request are answered as in version 1', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'hello' });
  await acp.opens(hello());
  await acp.hears('request', 'session/prompt');
  const method = 'session/request_permission';
  const options = [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }];
  acp.says({ kind: 'request', id: 1, method, params: { sessionId: 'acp-1', title: 'May I?', options } });
  await until(id, { pending_reviews: 1 });
  acp.says({ kind: 'notification', method: '$/cancel_request', params: { requestId: 1 } });
  expect(await acp.hears('response')).toMatchObject({ id: 1, error: { code: -32800 } });
  acp.says({ kind: 'request', id: 2, method, params: { sessionId: 'acp-1', title: 'May I?' } });
  expect(await acp.hears('response')).toMatchObject({ id: 2, error: { code: -32602 } });
  await until(id, { pending_reviews: 0 });
  await room.expectTrue(id);
});
