/** The start, course and end of conversations, with a scripted agent. */
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ANA, LivesRoom, SOON } from '../../testing/lives.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import { limits } from './limits.ts';

let room: LivesRoom;
beforeEach(async () => {
  room = await LivesRoom.make();
});
afterEach(() => room.end());

const refusal = { code: -32603, message: 'no such session' };
const signIn = { code: -32000, message: 'Authentication required' };
const config = (id: string) => room.prompting.config(ANA, id);
const until = (id: string, activity: string) =>
  vi.waitFor(async () => expect((await room.get(id)).activity).toBe(activity), SOON);

/** The session after the first one, once it was initialized with its capabilities. */
async function restarted(id: string, sessionCapabilities: object, loadSession = false): Promise<ScriptedAcp> {
  const { session_id } = await room.agents.restart(ANA, id, 0, null);
  const acp = new ScriptedAcp(room, session_id!);
  await acp.introduces({ agentCapabilities: { loadSession, sessionCapabilities } });
  return acp;
}

async function opened(): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, acp } = await startAcp(room);
  await acp.opens();
  await until(id, 'idle');
  return { id, acp };
}

test('initializes the agent without files and terminals, and opens a session in the workdir', async () => {
  const { id, acp } = await startAcp(room);
  expect((await room.get(id)).activity).toBe('starting');
  const { params } = await acp.answers('initialize', { result: { protocolVersion: 1 } });
  expect(params).toMatchObject({
    protocolVersion: 1,
    clientInfo: { name: 'svc' },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      subagents: {},
    },
  });
  const opening = await acp.answers('session/new', { result: { sessionId: 's' } });
  expect(opening.params).toEqual({ cwd: room.folder, mcpServers: [] });
  await until(id, 'idle');
  expect(await config(id)).toMatchObject({ phase: 'ready', agent: null, modes: null });
  await room.expectTrue(id);
});

test('reports an agent with another version, which cannot be prompted', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'hello' });
  await acp.answers('initialize', { result: { protocolVersion: 2 } });
  await until(id, 'needs_you');
  expect((await room.events(id)).at(-1)).toMatchObject({
    code: 'acp_version_unsupported',
    error: 'the agent speaks ACP version 2, this service version 1',
  });
  const prompt = room.prompting.prompt(ANA, id, [{ type: 'text', text: 'hello' }], null);
  await expect(prompt).rejects.toThrow('conversation with the agent has failed; see the error in its log');
  await expect(room.prompting.configure(ANA, id, { mode_id: 'x' })).rejects.toThrow('agent is not ready yet');
  expect(acp.lines).toHaveLength(1);
  expect(await room.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled' });
  await room.expectTrue(id);
});

test('reports a silent agent, which may still answer later', async () => {
  const { id, acp } = await startAcp(room);
  const request = await acp.hears('request', 'initialize');
  const stale = (stale_since: number | null) =>
    room.store.write((tx) => tx.run(tx.sql.updateTable('agents').set({ stale_since }).where('id', '=', id)));
  await stale(1);
  await room.pass(limits.acp_silent_ms);
  await stale(null);
  expect(await room.errors(id)).toEqual([]);
  await room.pass(limits.acp_silent_ms);
  await vi.waitFor(async () => expect(await room.errors(id)).toEqual(['acp_silent']), SOON);
  acp.says({ kind: 'response', id: request.id, result: { protocolVersion: 1 } });
  await acp.hears('request', 'session/new');
  const other = await startAcp(room);
  await other.acp.introduces();
  await other.acp.hears('request', 'session/new');
  await room.pass(limits.acp_silent_ms);
  expect(await room.errors(other.id)).toEqual([]);
});

test('lines that are not frames are output, as is an incomplete frame at the end', async () => {
  const { id, acp } = await startAcp(room);
  acp.writes('Loading…\n');
  await acp.opens();
  acp.writes('between\n');
  acp.updates({ sessionUpdate: 'session_info_update', title: 'T' });
  acp.writes('{"jsonrpc":"2.0","method":"session/upd');
  room.node.end(acp.session_id, 0);
  await room.until(id, 'completed');
  const output = (await room.events(id)).filter(({ type }) => type === 'output');
  expect(output.map(({ data }) => data)).toEqual([
    'Loading…\n',
    'between\n',
    '{"jsonrpc":"2.0","method":"session/upd',
  ]);
  expect(output.every(({ partial }) => partial === undefined)).toBe(true);
  const stored = await room.log.output(id, acp.session_id, 'stdout');
  const text = output.map(({ data }) => data).join('');
  expect(stored.size_bytes).toBe(Buffer.byteLength(text));
  for (const from of [0, 5, 15]) {
    const bytes = await buffer(stored.read(from, stored.size_bytes));
    expect(bytes.toString()).toBe(Buffer.from(text).subarray(from).toString());
  }
  expect(await config(id)).toMatchObject({ title: 'T' });
  await room.expectTrue(id);
});

test('rejects unsupported requests at any time', async () => {
  const { id, acp } = await startAcp(room);
  const ask = (request_id: number, method: string) =>
    acp.says({ kind: 'request', id: request_id, method, params: {} });
  ask(1, 'fs/read_text_file');
  await acp.introduces();
  expect(await acp.hears('response')).toMatchObject({ id: 1, error: { code: -32601 } });
  await acp.answers('session/new', { result: { sessionId: 'acp-1' } });
  ask(2, '_made/up');
  expect(await acp.hears('response')).toMatchObject({ id: 2, error: { code: -32601 } });
  acp.says({ kind: 'response', id: 'nobody', result: {} });
  acp.updates({ sessionUpdate: 'made_up' });
  acp.says({ kind: 'notification', method: '_made/up', params: null });
  await vi.waitFor(async () => expect((await room.events(id)).at(-1)?.method).toBe('_made/up'), SOON);
  await until(id, 'idle');
  await room.expectTrue(id);
});

test('resumes a conversation if supported, else loads it, else reports a new one', async () => {
  const { id } = await opened();
  const both = await restarted(id, { resume: {} }, true);
  const resumed = await both.answers('session/resume', { result: {} });
  expect(resumed.params).toEqual({ sessionId: 'acp-1', cwd: room.folder, mcpServers: [] });
  await until(id, 'idle');
  expect(await room.errors(id)).toEqual([]);

  const failing = await restarted(id, { resume: {} }, true);
  await failing.answers('session/resume', { error: refusal });
  expect((await failing.answers('session/load', { error: refusal })).params).toEqual(resumed.params);
  await failing.answers('session/new', { result: { sessionId: 'acp-2' } });
  await until(id, 'idle');
  expect(await room.errors(id)).toEqual(['context_lost']);

  const loading = await restarted(id, {}, true);
  const load = await loading.hears('request', 'session/load');
  expect(load.params).toMatchObject({ sessionId: 'acp-2' });
  loading.updates({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'of before' } });
  loading.says({ kind: 'response', id: load.id, result: null });
  loading.updates({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'of now' } });
  await until(id, 'idle');
  const updates = (await room.events(id)).filter(({ method }) => method === 'session/update');
  expect(updates.map(({ replay }) => replay)).toEqual([true, undefined]);
  expect(await room.errors(id)).toEqual(['context_lost']);

  const neither = await restarted(id, {});
  await neither.answers('session/new', { result: { sessionId: 'acp-3' } });
  await until(id, 'idle');
  expect(await room.errors(id)).toEqual(['context_lost', 'context_lost']);
  await room.expectTrue(id);
});

test('reports a session that cannot be opened', async () => {
  const { id, acp } = await startAcp(room);
  await acp.introduces();
  await acp.answers('session/new', { error: refusal });
  await until(id, 'needs_you');
  expect((await room.events(id)).at(-1)).toMatchObject({
    code: 'acp_session_failed',
    error: 'no such session',
  });
});

test('the conversation continues after a sign-in with a method that the agent offers', async () => {
  const { id, acp } = await startAcp(room, { prompt: 'hello' });
  const authMethods = [{ id: 'key', name: 'API key' }];
  await acp.introduces({ authMethods });
  await expect(room.prompting.authenticate(ANA, id, 'key')).rejects.toThrow(
    'agent is not waiting for a sign-in',
  );
  await acp.answers('session/new', { error: signIn });
  await until(id, 'needs_you');
  const methods = [{ id: 'key', name: 'API key', description: null, type: 'agent' }];
  expect((await room.events(id)).at(-1)).toMatchObject({ code: 'auth_required', methods });
  expect(await config(id)).toMatchObject({ phase: 'auth_required', auth_methods: methods });
  await expect(room.prompting.authenticate(ANA, id, 'face')).rejects.toThrow('unknown method_id');

  const refused = room.prompting.authenticate(ANA, id, 'key');
  await acp.answers('authenticate', { error: { code: -32603, message: 'wrong key' } });
  await expect(refused).rejects.toThrow('the agent refused: wrong key');
  const taken = room.prompting.authenticate(ANA, id, 'key');
  const request = await acp.answers('authenticate', { result: {} });
  expect(request.params).toEqual({ methodId: 'key' });
  expect(await taken).toMatchObject({ phase: 'opening' });
  await acp.answers('session/new', { result: { sessionId: 'acp-1' } });

  // The user may have to sign in again.
  await acp.answers('session/prompt', { error: signIn });
  await until(id, 'needs_you');
  await room.prompting.prompt(ANA, id, [{ type: 'text', text: 'again' }], null);
  const again = room.prompting.authenticate(ANA, id, 'key');
  await acp.answers('authenticate', { result: {} });
  await again;
  await acp.hears('request', 'session/prompt');
  expect(await room.errors(id)).toEqual(['auth_required', 'auth_required', 'prompt_failed']);
  await room.expectTrue(id);
});

test('an agent’s mode and options are set as it reports them', async () => {
  const { id, acp } = await startAcp(room);
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'auto' }] };
  await acp.introduces();
  await expect(room.prompting.configure(ANA, id, { mode_id: 'auto' })).rejects.toThrow(
    'agent is not ready yet',
  );
  await acp.answers('session/new', { result: { sessionId: 'acp-1', modes } });
  await until(id, 'idle');
  const set = room.prompting.configure(ANA, id, { mode_id: 'auto', options: { model: 'big', fast: true } });
  const of = async (method: string, result: object) => (await acp.answers(method, { result })).params;
  expect(await of('session/set_mode', {})).toEqual({ sessionId: 'acp-1', modeId: 'auto' });
  expect(await of('session/set_config_option', { configOptions: [{ id: 'model' }] })).toEqual({
    sessionId: 'acp-1',
    configId: 'model',
    value: 'big',
  });
  expect(await of('session/set_config_option', { configOptions: [{ id: 'fast' }] })).toEqual({
    sessionId: 'acp-1',
    configId: 'fast',
    type: 'boolean',
    value: true,
  });
  expect(await set).toMatchObject({ modes: { currentModeId: 'auto' }, config_options: [{ id: 'fast' }] });
  const refused = room.prompting.configure(ANA, id, { mode_id: 'ask' });
  await acp.answers('session/set_mode', { error: { code: -32602, message: 'not now' } });
  await expect(refused).rejects.toThrow('the agent refused: not now');
  expect(await config(id)).toMatchObject({ modes: { currentModeId: 'auto' } });
  await room.expectTrue(id);
});

test('limits the wait for an agent that does not answer', async () => {
  const { id, acp } = await opened();
  const request = Array.from({ length: limits.acp_asked_max }, () =>
    room.prompting.configure(ANA, id, { mode_id: 'auto' }),
  );
  const heard = [];
  while (heard.length < request.length) heard.push(await acp.hears('request', 'session/set_mode'));
  await expect(room.prompting.configure(ANA, id, { mode_id: 'auto' })).rejects.toThrow(
    'agent has not answered yet',
  );
  for (const item of heard) acp.says({ kind: 'response', id: item.id, result: {} });
  await Promise.all(request);
  const last = room.prompting.configure(ANA, id, { mode_id: 'auto' });
  await acp.hears('request', 'session/set_mode');
  room.node.end(acp.session_id, 0);
  await expect(last).rejects.toThrow('agent is not running');
  await room.expectTrue(id);
});

test('a team’s member gets the tools of its team, in new and resumed sessions; other agents do not', async () => {
  room.actor_token = 'ses.mac';
  const tools = [{ name: 'svc', command: 'svc', args: ['mcp', '--actor'], env: [] }];
  const rows = await addTeam(room.store, 'x', specOf(['boss']));
  const { id } = await room.create({ protocol: 'acp' });
  await joinTeam(room.store, id, rows, 'boss');
  const begin = async () => new ScriptedAcp(room, (await room.agents.start(ANA, id, null)).session_id!);
  const first = await begin();
  await first.introduces();
  const opened = await first.answers('session/new', { result: { sessionId: 'acp-1' } });
  expect(opened.params).toEqual({ cwd: room.folder, mcpServers: tools });
  await until(id, 'idle');
  room.node.end(first.session_id, 0);
  await room.until(id, 'completed');
  const second = await begin();
  await second.introduces({ agentCapabilities: { loadSession: true } });
  const loaded = await second.answers('session/load', { result: {} });
  expect(loaded.params).toEqual({ sessionId: 'acp-1', cwd: room.folder, mcpServers: tools });

  const { acp } = await startAcp(room);
  await acp.introduces();
  expect((await acp.hears('request', 'session/new')).params).toMatchObject({ mcpServers: [] });
});

test('a team’s member gets no tools if agents cannot call the plane', async () => {
  const rows = await addTeam(room.store, 'x', specOf(['boss']));
  const { id } = await room.create({ protocol: 'acp' });
  await joinTeam(room.store, id, rows, 'boss');
  const { session_id } = await room.agents.start(ANA, id, null);
  const acp = new ScriptedAcp(room, session_id!);
  await acp.introduces();
  expect((await acp.hears('request', 'session/new')).params).toMatchObject({ mcpServers: [] });
});
