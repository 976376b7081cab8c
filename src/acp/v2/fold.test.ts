import { AGENT_METHODS, CLIENT_METHODS } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { limits } from '../../base/limits.ts';
import { AUTH_REQUIRED, type Message, type RequestId, rpcErrors } from '../message.ts';
import { currentMode, findModeRequest } from '../modes.ts';
import { initialState } from '../state.ts';
import { type FoldedFrame, foldFrame, foldReceived } from './fold.ts';
import { toV2 } from './wire.ts';

type RpcError = { code: number; message: string };

/** A session's conversation in v2. The service's messages are translated as they are when sent to an agent. */
class Session {
  last: FoldedFrame = { state: initialState, replay: false, source: null, events: [], accepted: false };

  get state() {
    return this.last.state;
  }

  get events() {
    return this.last.events;
  }

  sendRequest(method: string, params: object = {}, id: RequestId = `q${this.state.asked_count + 1}`): this {
    const message: Message = { kind: 'request', id, method, params };
    return this.#take('to_agent', this.state.protocol_version === 2 ? toV2(message) : message);
  }

  answers(result: unknown, error?: RpcError): this {
    const { id } = this.state.asked.at(-1)!;
    return this.#take('from_agent', { kind: 'response', id, ...(error ? { error } : { result }) });
  }

  receiveRequest(params: object, id: RequestId = 1): this {
    const method = CLIENT_METHODS.session_request_permission;
    return this.#take('from_agent', { kind: 'request', id, method, params });
  }

  update(sessionUpdate: string, more: object = {}, sessionId = 's'): this {
    const params = { sessionId, update: { sessionUpdate, ...more } };
    return this.#take('from_agent', { kind: 'notification', method: CLIENT_METHODS.session_update, params });
  }

  is(state: string, more: object = {}): this {
    return this.update('state_update', { state, ...more });
  }

  echoes(): this {
    return this.update('user_message', { messageId: 'm1', content: [] });
  }

  accepts(): this {
    return this.answers({ messageId: 'm1' });
  }

  cancel(): this {
    return this.#take('to_agent', { kind: 'notification', method: AGENT_METHODS.session_cancel, params: {} });
  }

  #take(direction: 'from_agent' | 'to_agent', message: Message): this {
    this.last = foldFrame(this.state, direction, message);
    return this;
  }
}

const hello = {
  protocolVersion: 2,
  info: { name: 'a', title: 'A', version: '1' },
  capabilities: { session: { prompt: { image: {}, audio: null }, mcp: { stdio: {} } } },
  authMethods: [{ methodId: 'key', name: 'Key', type: 'agent' }],
};
const offered = () => new Session().sendRequest(AGENT_METHODS.initialize, { protocolVersion: 2 });
const begun = () => offered().answers(hello);
const ready = () => begun().sendRequest(AGENT_METHODS.session_new).answers({ sessionId: 's' });
const prompted = () => ready().sendRequest(AGENT_METHODS.session_prompt, {}, 'prm_1');
const ended = (stop_reason: string | null, error: RpcError | null = null) =>
  expect.objectContaining({ kind: 'turn_ended', prompt_id: 'prm_1', stop_reason, error });

test('an agent that chooses version 2 reports its name and capabilities', () => {
  const session = begun();
  expect(session.events).toContainEqual({ kind: 'initialized' });
  expect(session.state).toMatchObject({
    protocol_version: 2,
    agent: { name: 'a', title: 'A', version: '1' },
    capabilities: { load: false, resume: true, image: true, audio: false, embedded_context: false },
    mcp_stdio: true,
    auth_methods: [{ id: 'key', name: 'Key', description: null, type: 'agent' }],
  });
});

test('an agent that chooses version 1 gets version 1', () => {
  const session = offered().answers({ protocolVersion: 1, agentCapabilities: {} });
  expect(session.events).toContainEqual({ kind: 'initialized' });
  expect(session.state).toMatchObject({ protocol_version: 1 });
});

test.each([
  ['another version', { ...hello, protocolVersion: 3 }, 'ACP version 3, this service versions 1 and 2'],
  ['no version', {}, 'no version of ACP, this service versions 1 and 2'],
])('an agent that chooses %s fails', (_what, result, message) => {
  const session = offered().answers(result);
  expect(session.state).toMatchObject({ phase: 'failed', protocol_version: null });
  const failed = { kind: 'failed', code: 'acp_version_unsupported', message: `the agent speaks ${message}` };
  expect(session.events).toContainEqual(failed);
});

test('fails an agent that chooses a version that was not offered', () => {
  const session = new Session().sendRequest(AGENT_METHODS.initialize, { protocolVersion: 1 }).answers(hello);
  expect(session.state).toMatchObject({ phase: 'failed', protocol_version: null });
});

test('an agent that repeats version 2 but has no sessions in it fails', () => {
  const session = offered().answers({ protocolVersion: 2, agentCapabilities: { loadSession: true } });
  expect(session.state).toMatchObject({ phase: 'failed', asked: [] });
  expect(session.events).toContainEqual(
    expect.objectContaining({ kind: 'failed', code: 'acp_sessions_unsupported' }),
  );
  expect(session.events).not.toContainEqual({ kind: 'initialized' });
});

test('signing in uses the method name of version 2', () => {
  const session = begun()
    .sendRequest(AGENT_METHODS.session_new)
    .answers(null, { code: AUTH_REQUIRED, message: 'sign in' });
  expect(session.state.phase).toBe('auth_required');
  session.sendRequest(AGENT_METHODS.authenticate, { methodId: 'key' });
  expect(session.state).toMatchObject({ phase: 'authenticating', asked: [{ method: 'authenticate' }] });
  expect(session.answers({}).events).toContainEqual({ kind: 'authenticated' });
});

test('opening a session returns its options and commands, and the mode is one of the options', () => {
  const options = [
    { value: 'ask', name: 'Ask' },
    { value: 'auto', name: 'Auto' },
  ];
  const mode = {
    configId: 'how',
    name: 'Mode',
    category: 'mode',
    type: 'select',
    currentValue: 'auto',
    options,
  };
  const availableCommands = [{ type: 'command', name: 'plan', description: 'Plans' }];
  const session = begun().sendRequest(AGENT_METHODS.session_new);
  session.answers({ sessionId: 's', configOptions: [mode], availableCommands });
  expect(session.events).toContainEqual({ kind: 'opened', method: AGENT_METHODS.session_new });
  expect(session.state).toMatchObject({ phase: 'ready', commands: availableCommands, modes: null });
  expect(session.state.config_options).toEqual([
    expect.objectContaining({ id: 'how', currentValue: 'auto' }),
  ]);
  expect(currentMode(session.state)).toBe('auto');
  expect(findModeRequest(session.state, 'ask')).toMatchObject({ params: { configId: 'how', value: 'ask' } });
  expect(findModeRequest(session.state, 'other')).toBe(null);
  session.sendRequest(AGENT_METHODS.session_set_config_option, { configId: 'how', value: 'ask' });
  session.answers({ configOptions: [{ ...mode, currentValue: 'ask' }] });
  expect(currentMode(session.state)).toBe('ask');
  session.update('config_option_update', { configOptions: [mode] });
  expect(currentMode(session.state)).toBe('auto');
});

test('an agent without an option for modes has no mode to set', () => {
  expect(findModeRequest(ready().state, 'ask')).toBe(null);
});

test('a turn ends when the agent becomes idle, not when it accepts the prompt', () => {
  const session = prompted().accepts();
  expect(session.last).toMatchObject({ accepted: true, events: [] });
  expect(session.state.turn).toEqual({ prompt_id: 'prm_1' });
  session.echoes().is('running').is('requires_action').is('running');
  expect(session.state).toMatchObject({ turn: { prompt_id: 'prm_1' }, work: { busy: true } });
  session.is('idle', { stopReason: 'end_turn' });
  expect(session.events).toContainEqual(ended('end_turn'));
  expect(session.state).toMatchObject({ turn: null, asked: [], work: { busy: false } });
});

test('a repeated idle state ends nothing', () => {
  const session = prompted().accepts().is('running').is('idle', { stopReason: 'end_turn' });
  session.is('idle', { stopReason: 'end_turn', background: [] });
  expect(session.events).toEqual([]);
  session.sendRequest(AGENT_METHODS.session_prompt, {}, 'prm_2').is('idle', { stopReason: 'end_turn' });
  session.accepts().is('idle', { stopReason: 'end_turn' });
  expect(session.events).toEqual([]);
  expect(session.state.turn).toEqual({ prompt_id: 'prm_2' });
  session.is('running').is('idle', { stopReason: 'max_tokens' });
  expect(session.events).toContainEqual(
    expect.objectContaining({ prompt_id: 'prm_2', stop_reason: 'max_tokens' }),
  );
});

test('a turn that finishes before the agent accepts the prompt ends on acceptance', () => {
  const session = prompted().is('running').echoes().is('idle', { stopReason: 'refusal' });
  expect(session.events).toEqual([]);
  expect(session.state.turn).not.toBe(null);
  expect(session.accepts().events).toContainEqual(ended('refusal'));
  expect(session.last.accepted).toBe(false);
  expect(session.state.turn).toBe(null);
});

test('work without a prompt does not end the turn of a prompt sent meanwhile', () => {
  const session = prompted().is('running').is('idle', { stopReason: 'end_turn' });
  session.accepts().echoes();
  expect(session.state.turn).not.toBe(null);
  expect(session.is('running').is('idle', { stopReason: 'end_turn' }).events).toContainEqual(
    ended('end_turn'),
  );
});

test('work without a prompt keeps the agent busy until it is idle', () => {
  const session = ready().is('running');
  expect(session.state).toMatchObject({ turn: null, work: { busy: true } });
  expect(session.is('running').events).toEqual([]);
  expect(session.is('idle').events).toEqual([{ kind: 'idle' }]);
  expect(session.state.work.busy).toBe(false);
  expect(session.is('idle').events).toEqual([]);
});

test('an idle sub-agent does not end the turn', () => {
  const session = prompted().accepts().is('running');
  session.update('state_update', { state: 'idle', stopReason: 'end_turn' }, 'child');
  expect(session.state).toMatchObject({ turn: { prompt_id: 'prm_1' }, work: { busy: true } });
});

test('a cancelled turn ends as soon as the agent is idle', () => {
  const session = prompted().accepts().cancel().is('idle', { stopReason: 'cancelled' });
  expect(session.events).toContainEqual(ended('cancelled'));
  const untaken = prompted().cancel().answers(null, rpcErrors.requestCancelled);
  expect(untaken.events).toContainEqual(ended('cancelled'));
});

test('a rejected prompt, or work that fails, ends the turn with the reason', () => {
  const error = { code: -32603, message: 'no model' };
  expect(prompted().answers(null, error).events).toContainEqual(ended(null, error));
  const failed = prompted().accepts().is('running').is('idle', { stopReason: 'error', error });
  expect(failed.events).toContainEqual(ended('error', error));
  const signed_out = { code: AUTH_REQUIRED, message: 'sign in' };
  const session = prompted().accepts().is('running').is('idle', { stopReason: 'error', error: signed_out });
  expect(session.state.phase).toBe('auth_required');
});

const options = [{ optionId: 'once', name: 'Once', kind: 'allow_once' }];

test('a permission request has its own title and all known details of the tool call', () => {
  const toolCall = { toolCallId: 'c1', title: 'rm -r build', kind: 'execute', content: [] };
  const session = prompted().receiveRequest({
    ...{ sessionId: 's', title: 'Run this?', description: 'It cleans up.', options },
    subject: { type: 'tool_call', toolCall },
  });
  const [event] = session.events;
  const text = (text: string) => ({ type: 'content', content: { type: 'text', text } });
  expect(event).toMatchObject({
    kind: 'permission_requested',
    permission: {
      options: [{ option_id: 'once' }],
      tool_call: { ...toolCall, title: 'Run this?', content: [text('It cleans up.'), text('rm -r build')] },
    },
  });
  expect(session.state.acting.requested).toBe(true);
});

test.each([
  [
    { type: 'command', command: 'ls', cwd: '/w' },
    { kind: 'execute', rawInput: { command: 'ls', cwd: '/w' } },
  ],
  [{ type: '_new', what: 1 }, { rawInput: { type: '_new', what: 1 } }],
  [undefined, {}],
])('a permission for %o shows what it is for', (subject, tool_call) => {
  const session = prompted().receiveRequest({ sessionId: 's', title: 'May I?', subject, options });
  const permission = expect.objectContaining({ tool_call: { title: 'May I?', ...tool_call } });
  expect(session.events).toContainEqual(
    expect.objectContaining({ kind: 'permission_requested', permission }),
  );
});

test('acting without asking is observed, unless the act was cancelled', () => {
  const call = { toolCallId: 'c1', title: 'Write', kind: 'edit' };
  const cancelled = prompted().update('tool_call_update', { ...call, status: 'cancelled' });
  expect(cancelled.state.acting).toMatchObject({ unasked: null, calls: [] });
  const done = prompted().update('tool_call_update', { ...call, status: 'in_progress' });
  done.update('tool_call_update', { toolCallId: 'c1', status: 'completed' });
  expect(done.state.acting.unasked).toBe('Write');
});

test('plan, usage and title are stored as in version 1', () => {
  const entries = [{ content: 'Look', priority: 'high', status: 'pending' }];
  const session = prompted().update('plan_update', { plan: { type: 'items', planId: 'p', entries } });
  session.update('usage_update', { used: 1, size: 2 }).update('session_info_update', { title: 'T' });
  expect(session.state).toMatchObject({ plan: entries, usage: { used: 1, size: 2 }, title: 'T' });
  const { state } = session;
  session.update('plan_update', { plan: { type: '_graph', planId: 'p' } }).update('_other');
  expect(session.state).toBe(state);
});

test('error details of an end are bounded', () => {
  const session = prompted().is('running').echoes();
  session.is('idle', { stopReason: 'x'.repeat(limits.acp_text_chars_max + 1) });
  expect(session.state.work.end?.stop_reason).toHaveLength(limits.acp_text_chars_max);
});

test('servers and options are sent in the form of version 2', () => {
  const request = (method: string, params: object): Message => ({ kind: 'request', id: 1, method, params });
  const server = { name: 'svc', command: 'svc', args: ['mcp'], env: [] };
  expect(toV2(request(AGENT_METHODS.session_new, { cwd: '/w', mcpServers: [server] }))).toMatchObject({
    params: { mcpServers: [{ type: 'stdio', name: 'svc', command: '/usr/bin/env', args: ['svc', 'mcp'] }] },
  });
  const set = (value: unknown) =>
    toV2(request(AGENT_METHODS.session_set_config_option, { configId: 'o', value }));
  expect(set('a')).toMatchObject({ params: { configId: 'o', type: 'id', value: 'a' } });
  expect(set(true)).toMatchObject({ params: { type: 'boolean', value: true } });
});

test('a message that cannot be folded changes nothing, but ends the wait for a response', () => {
  const odd = new TypeError('x is not a function');
  const fail = () => {
    throw odd;
  };
  const { state } = new Session().sendRequest('initialize', { protocolVersion: 1 });
  const update = Object.defineProperty({ kind: 'notification', method: 'session/update' }, 'params', {
    get: fail,
  });
  const unreadable = foldReceived(state, update as Message);
  expect(unreadable.state).toBe(state);
  expect(unreadable.events).toEqual([{ kind: 'unreadable', message: update, error: odd }]);
  const response = Object.defineProperty({ kind: 'response', id: state.asked[0]!.id }, 'result', {
    get: fail,
  });
  const failed = foldReceived(state, response as Message);
  expect(failed.state).toMatchObject({ phase: 'failed', asked: [] });
  expect(failed.events.map(({ kind }) => kind)).toEqual(['unreadable', 'failed', 'answered']);
});
