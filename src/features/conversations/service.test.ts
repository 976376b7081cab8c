/** The start, course and end of conversations, with a scripted agent. */
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { limits as sharedLimits } from '../../base/limits.ts';
import { ANA, FeaturesFixture, SOON } from '../../testing/features-fixture.ts';
import { ScriptedAcp, startAcp } from '../../testing/scripted-acp.ts';
import { addTeam, joinTeam, specOf } from '../../testing/team.ts';
import { limits } from './limits.ts';

let fixture: FeaturesFixture;
beforeEach(async () => {
  fixture = await FeaturesFixture.make();
});
afterEach(() => fixture.end());

const refusal = { code: -32603, message: 'no such session' };
const signIn = { code: -32000, message: 'Authentication required' };
const config = (id: string) => fixture.prompting.config(ANA, id);
const until = (id: string, activity: string) =>
  vi.waitFor(async () => expect((await fixture.get(id)).activity).toBe(activity), SOON);

/** The session after the first one, once it was initialized with its capabilities. */
async function restarted(id: string, sessionCapabilities: object, loadSession = false): Promise<ScriptedAcp> {
  const { session_id } = await fixture.agents.restart(ANA, id, 0, null);
  const acp = new ScriptedAcp(fixture, session_id!);
  await acp.initialize({ agentCapabilities: { loadSession, sessionCapabilities } });
  return acp;
}

async function opened(): Promise<{ id: string; acp: ScriptedAcp }> {
  const { id, acp } = await startAcp(fixture);
  await acp.openSession();
  await until(id, 'idle');
  return { id, acp };
}

test('initializes the agent without files and terminals, and opens a session in the workdir', async () => {
  const { id, acp } = await startAcp(fixture);
  expect((await fixture.get(id)).activity).toBe('starting');
  const { params } = await acp.respond('initialize', { result: { protocolVersion: 1 } });
  expect(params).toMatchObject({
    protocolVersion: 1,
    clientInfo: { name: 'svc' },
    clientCapabilities: {
      fs: { readTextFile: false, writeTextFile: false },
      terminal: false,
      subagents: {},
    },
  });
  const opening = await acp.respond('session/new', { result: { sessionId: 's' } });
  expect(opening.params).toEqual({ cwd: fixture.folder, mcpServers: [] });
  await until(id, 'idle');
  expect(await config(id)).toMatchObject({ phase: 'ready', agent: null, modes: null });
  await fixture.expectSameState(id);
});

test('reports an agent with another version, which cannot be prompted', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'hello' });
  await acp.respond('initialize', { result: { protocolVersion: 2 } });
  await until(id, 'needs_you');
  expect((await fixture.events(id)).at(-1)).toMatchObject({
    code: 'acp_version_unsupported',
    error: 'the agent speaks ACP version 2, this service version 1',
  });
  const prompt = fixture.prompting.prompt(ANA, id, [{ type: 'text', text: 'hello' }], null);
  await expect(prompt).rejects.toThrow('conversation with the agent has failed; see the error in its log');
  await expect(fixture.prompting.configure(ANA, id, { mode_id: 'x' })).rejects.toThrow(
    'agent is not ready yet',
  );
  expect(acp.lines).toHaveLength(1);
  expect(await fixture.agents.stop(ANA, id, 0)).toMatchObject({ status: 'cancelled' });
  await fixture.expectSameState(id);
});

test('reports a silent agent, which may still answer later', async () => {
  const { id, acp } = await startAcp(fixture);
  const request = await acp.receive('request', 'initialize');
  const stale = (stale_since: number | null) =>
    fixture.store.write((tx) =>
      tx.run(tx.sql.updateTable('agents').set({ stale_since }).where('id', '=', id)),
    );
  await stale(1);
  await fixture.advanceClock(limits.acp_silent_ms);
  await stale(null);
  expect(await fixture.errors(id)).toEqual([]);
  await fixture.advanceClock(limits.acp_silent_ms);
  await vi.waitFor(async () => expect(await fixture.errors(id)).toEqual(['acp_silent']), SOON);
  acp.send({ kind: 'response', id: request.id, result: { protocolVersion: 1 } });
  await acp.receive('request', 'session/new');
  const other = await startAcp(fixture);
  await other.acp.initialize();
  const opening = await other.acp.receive('request', 'session/new');
  await fixture.advanceClock(limits.acp_silent_ms);
  expect(await fixture.errors(other.id)).toEqual([]);
  await fixture.advanceClock(limits.acp_opening_ms - limits.acp_silent_ms);
  await vi.waitFor(async () => expect(await fixture.errors(other.id)).toEqual(['acp_silent']), SOON);
  other.acp.send({ kind: 'response', id: opening.id, result: { sessionId: 'acp-1' } });
  const prompt = await fixture.prompting.prompt(ANA, other.id, [{ type: 'text', text: 'hello' }], null);
  expect(await other.acp.receive('request', 'session/prompt')).toMatchObject({ id: prompt.prompt_id });
});

test('lines that are not frames are output, as is an incomplete frame at the end', async () => {
  const { id, acp } = await startAcp(fixture);
  acp.write('Loading…\n');
  await acp.openSession();
  acp.write('between\n');
  acp.sendUpdate({ sessionUpdate: 'session_info_update', title: 'T' });
  acp.write('{"jsonrpc":"2.0","method":"session/upd');
  fixture.node.end(acp.session_id, 0);
  await fixture.until(id, 'completed');
  const output = (await fixture.events(id)).filter(({ type }) => type === 'output');
  expect(output.map(({ data }) => data)).toEqual([
    'Loading…\n',
    'between\n',
    '{"jsonrpc":"2.0","method":"session/upd',
  ]);
  expect(output.every(({ partial }) => partial === undefined)).toBe(true);
  const stored = await fixture.log.output(id, acp.session_id, 'stdout');
  const text = output.map(({ data }) => data).join('');
  expect(stored.size_bytes).toBe(Buffer.byteLength(text));
  for (const from of [0, 5, 15]) {
    const bytes = await buffer(stored.read(from, stored.size_bytes));
    expect(bytes.toString()).toBe(Buffer.from(text).subarray(from).toString());
  }
  expect(await config(id)).toMatchObject({ title: 'T' });
  await fixture.expectSameState(id);
});

test('rejects unsupported requests at any time', async () => {
  const { id, acp } = await startAcp(fixture);
  const ask = (request_id: number, method: string) =>
    acp.send({ kind: 'request', id: request_id, method, params: {} });
  const initialize = await acp.receive('request', 'initialize');
  ask(1, 'fs/read_text_file');
  acp.send({ kind: 'response', id: initialize.id, result: { protocolVersion: 1 } });
  expect(await acp.receive('response')).toMatchObject({ id: 1, error: { code: -32601 } });
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  ask(2, '_made/up');
  expect(await acp.receive('response')).toMatchObject({ id: 2, error: { code: -32601 } });
  acp.send({ kind: 'response', id: 'nobody', result: {} });
  acp.sendUpdate({ sessionUpdate: 'made_up' });
  acp.send({ kind: 'notification', method: '_made/up', params: null });
  await vi.waitFor(async () => expect((await fixture.events(id)).at(-1)?.method).toBe('_made/up'), SOON);
  await until(id, 'idle');
  await fixture.expectSameState(id);
});

test('resumes a conversation if supported, else loads it, else reports a new one', async () => {
  const { id } = await opened();
  const both = await restarted(id, { resume: {} }, true);
  const resumed = await both.respond('session/resume', { result: {} });
  expect(resumed.params).toEqual({ sessionId: 'acp-1', cwd: fixture.folder, mcpServers: [] });
  await until(id, 'idle');
  expect(await fixture.errors(id)).toEqual([]);

  const failing = await restarted(id, { resume: {} }, true);
  await failing.respond('session/resume', { error: refusal });
  expect((await failing.respond('session/load', { error: refusal })).params).toEqual(resumed.params);
  await failing.respond('session/new', { result: { sessionId: 'acp-2' } });
  await until(id, 'idle');
  expect(await fixture.errors(id)).toEqual(['context_lost']);

  const loading = await restarted(id, {}, true);
  const load = await loading.receive('request', 'session/load');
  expect(load.params).toMatchObject({ sessionId: 'acp-2' });
  loading.sendUpdate({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'of before' } });
  loading.send({ kind: 'response', id: load.id, result: null });
  loading.sendUpdate({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'of now' } });
  await until(id, 'idle');
  const updates = (await fixture.events(id)).filter(({ method }) => method === 'session/update');
  expect(updates.map(({ replay }) => replay)).toEqual([true, undefined]);
  expect(await fixture.errors(id)).toEqual(['context_lost']);

  const neither = await restarted(id, {});
  await neither.respond('session/new', { result: { sessionId: 'acp-3' } });
  await until(id, 'idle');
  expect(await fixture.errors(id)).toEqual(['context_lost', 'context_lost']);
  await fixture.expectSameState(id);
});

test('reports a session that cannot be opened', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.initialize();
  await acp.respond('session/new', { error: refusal });
  await until(id, 'needs_you');
  expect((await fixture.events(id)).at(-1)).toMatchObject({
    code: 'acp_session_failed',
    error: 'no such session',
  });
  // Nobody can sign in or answer anything.
  expect((await fixture.get(id)).needs_you).toBe(null);
});

test('the conversation continues after a sign-in with a method that the agent offers', async () => {
  const { id, acp } = await startAcp(fixture, { prompt: 'hello' });
  const authMethods = [{ id: 'key', name: 'API key' }];
  await acp.initialize({ authMethods });
  await expect(fixture.prompting.authenticate(ANA, id, 'key')).rejects.toThrow(
    'agent is not waiting for a sign-in',
  );
  await acp.respond('session/new', { error: signIn });
  await until(id, 'needs_you');
  const methods = [{ id: 'key', name: 'API key', description: null, type: 'agent' }];
  expect((await fixture.events(id)).at(-1)).toMatchObject({ code: 'auth_required', methods });
  expect(await config(id)).toMatchObject({ phase: 'auth_required', auth_methods: methods });
  const waiting = await fixture.get(id);
  expect(waiting).toMatchObject({ needs_you: 'sign_in', sign_in_since: expect.any(String) });
  await expect(fixture.prompting.authenticate(ANA, id, 'face')).rejects.toThrow('unknown method_id');

  const refused = fixture.prompting.authenticate(ANA, id, 'key');
  await acp.respond('authenticate', { error: { code: -32603, message: 'wrong key' } });
  await expect(refused).rejects.toThrow('the agent refused: wrong key');
  expect(await fixture.get(id)).toMatchObject({ needs_you: 'sign_in', sign_in_since: waiting.sign_in_since });
  const taken = fixture.prompting.authenticate(ANA, id, 'key');
  const request = await acp.respond('authenticate', { result: {} });
  expect(request.params).toEqual({ methodId: 'key' });
  expect(await taken).toMatchObject({ phase: 'opening' });
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  await until(id, 'working');
  expect(await fixture.get(id)).toMatchObject({ needs_you: null, sign_in_since: null });

  // The user may have to sign in again.
  await acp.respond('session/prompt', { error: signIn });
  await until(id, 'needs_you');
  await fixture.prompting.prompt(ANA, id, [{ type: 'text', text: 'again' }], null);
  const again = fixture.prompting.authenticate(ANA, id, 'key');
  await acp.respond('authenticate', { result: {} });
  await again;
  await acp.receive('request', 'session/prompt');
  expect(await fixture.errors(id)).toEqual(['auth_required', 'auth_required', 'prompt_failed']);
  await fixture.expectSameState(id);
});

test('a sign-in that the agent does not answer can be repeated', async () => {
  const { id, acp } = await startAcp(fixture);
  await acp.initialize({ authMethods: [{ id: 'key', name: 'API key' }] });
  await acp.respond('session/new', { error: signIn });
  await until(id, 'needs_you');
  const silent = fixture.prompting.authenticate(ANA, id, 'key');
  const first = await acp.receive('request', 'authenticate');
  const again = fixture.prompting.authenticate(ANA, id, 'key');
  await acp.respond('authenticate', { result: {} });
  await again;
  await acp.respond('session/new', { result: { sessionId: 'acp-1' } });
  await until(id, 'idle');
  acp.send({ kind: 'response', id: first.id, error: { code: -32603, message: 'too late' } });
  await expect(silent).rejects.toThrow('too late');
  expect(await config(id)).toMatchObject({ phase: 'ready' });
  await fixture.expectSameState(id);
});

test('an agent’s mode and options are set as it reports them', async () => {
  const { id, acp } = await startAcp(fixture);
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'auto' }] };
  await acp.initialize();
  await expect(fixture.prompting.configure(ANA, id, { mode_id: 'auto' })).rejects.toThrow(
    'agent is not ready yet',
  );
  await acp.respond('session/new', { result: { sessionId: 'acp-1', modes } });
  await until(id, 'idle');
  const set = fixture.prompting.configure(ANA, id, {
    mode_id: 'auto',
    options: { model: 'big', fast: true },
  });
  const of = async (method: string, result: object) => (await acp.respond(method, { result })).params;
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
  const refused = fixture.prompting.configure(ANA, id, { mode_id: 'ask' });
  await acp.respond('session/set_mode', { error: { code: -32602, message: 'not now' } });
  await expect(refused).rejects.toThrow('the agent refused: not now');
  expect(await config(id)).toMatchObject({ modes: { currentModeId: 'auto' } });
  await fixture.expectSameState(id);
});

test('limits the wait for an agent that does not answer', async () => {
  const { id, acp } = await opened();
  const request = Array.from({ length: limits.acp_asked_max }, () =>
    fixture.prompting.configure(ANA, id, { mode_id: 'auto' }),
  );
  const heard = [];
  while (heard.length < request.length) heard.push(await acp.receive('request', 'session/set_mode'));
  await expect(fixture.prompting.configure(ANA, id, { mode_id: 'auto' })).rejects.toThrow(
    'agent has not answered yet',
  );
  for (const item of heard) acp.send({ kind: 'response', id: item.id, result: {} });
  await Promise.all(request);
  const last = fixture.prompting.configure(ANA, id, { mode_id: 'auto' });
  await acp.receive('request', 'session/set_mode');
  fixture.node.end(acp.session_id, 0);
  await expect(last).rejects.toThrow('agent is not running');
  await fixture.expectSameState(id);
});

test('limits the size of the requests that wait for an agent', async () => {
  const { id, acp } = await opened();
  // In JSON, a control character takes six characters.
  const mode_id = '\u0001'.repeat(sharedLimits.acp_text_chars_max);
  const requests = Array.from({ length: 3 }, () => fixture.prompting.configure(ANA, id, { mode_id }));
  const heard = [];
  while (heard.length < requests.length) heard.push(await acp.receive('request', 'session/set_mode'));
  await expect(fixture.prompting.configure(ANA, id, { mode_id })).rejects.toThrow(
    'agent has not answered yet',
  );
  for (const item of heard) acp.send({ kind: 'response', id: item.id, result: {} });
  await Promise.all(requests);
});

test('a team’s member gets the tools of its team, in new and resumed sessions; other agents do not', async () => {
  const tools = [{ name: 'svc', command: 'svc', args: ['mcp', '--actor'], env: [] }];
  const rows = await addTeam(fixture.store, 'x', specOf(['boss']));
  const { id } = await fixture.create({ protocol: 'acp' });
  await joinTeam(fixture.store, id, rows, 'boss');
  const begin = async () => new ScriptedAcp(fixture, (await fixture.agents.start(ANA, id, null)).session_id!);
  const first = await begin();
  await first.initialize();
  const opened = await first.respond('session/new', { result: { sessionId: 'acp-1' } });
  expect(opened.params).toEqual({ cwd: fixture.folder, mcpServers: tools });
  await until(id, 'idle');
  fixture.node.end(first.session_id, 0);
  await fixture.until(id, 'completed');
  const second = await begin();
  await second.initialize({ agentCapabilities: { loadSession: true } });
  const loaded = await second.respond('session/load', { result: {} });
  expect(loaded.params).toEqual({ sessionId: 'acp-1', cwd: fixture.folder, mcpServers: tools });

  const { acp } = await startAcp(fixture);
  await acp.initialize();
  expect((await acp.receive('request', 'session/new')).params).toMatchObject({ mcpServers: [] });
});

test('a team’s member gets no tools if agents cannot call the plane', async () => {
  await fixture.close();
  fixture.actor_calls = false;
  await fixture.open();
  const rows = await addTeam(fixture.store, 'x', specOf(['boss']));
  const { id } = await fixture.create({ protocol: 'acp' });
  await joinTeam(fixture.store, id, rows, 'boss');
  const { session_id } = await fixture.agents.start(ANA, id, null);
  const acp = new ScriptedAcp(fixture, session_id!);
  await acp.initialize();
  expect((await acp.receive('request', 'session/new')).params).toMatchObject({ mcpServers: [] });
});
