import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { limits as sharedLimits } from '../base/limits.ts';
import { noObservations } from './acting.ts';
import { type AcpEvent, fold } from './fold.ts';
import { limits } from './limits.ts';
import { AUTH_REQUIRED, type Message, type RequestId, type RpcError, rpcErrors } from './message.ts';
import { type AcpState, initialState } from './state.ts';

/** A conversation in a session, from a given state. */
class Session {
  state: AcpState;
  events: AcpEvent[] = [];
  replay = false;

  constructor(state: AcpState = initialState) {
    this.state = state;
  }

  sendRequest(method: string, params: unknown = {}, id: RequestId = `q${this.state.asked_count + 1}`): this {
    return this.#take('to_agent', { kind: 'request', id, method, params });
  }

  /** The agent's answer to our last open request. */
  answers(result: unknown, error?: { code: number; message: string }): this {
    return this.receiveAnswer(this.state.asked.at(-1)!.id, result, error);
  }

  receiveAnswer(id: RequestId, result: unknown, error?: { code: number; message: string }): this {
    return this.#take('from_agent', { kind: 'response', id, ...(error ? { error } : { result }) });
  }

  receiveRequest(method: string, params: unknown = {}, id: RequestId = 1): this {
    return this.#take('from_agent', { kind: 'request', id, method, params });
  }

  respond(id: RequestId = 1, result: object = {}): this {
    return this.#take('to_agent', { kind: 'response', id, result });
  }

  refuse(id: RequestId, error: RpcError): this {
    return this.#take('to_agent', { kind: 'response', id, error });
  }

  receiveNotification(method: string, params: unknown): this {
    return this.#take('from_agent', { kind: 'notification', method, params });
  }

  update(update: unknown, sessionId = 's'): this {
    return this.receiveNotification(CLIENT_METHODS.session_update, { sessionId, update });
  }

  cancel(): this {
    return this.#take('to_agent', { kind: 'notification', method: AGENT_METHODS.session_cancel, params: {} });
  }

  #take(direction: 'from_agent' | 'to_agent', message: Message): this {
    ({ state: this.state, events: this.events, replay: this.replay } = fold(this.state, direction, message));
    return this;
  }
}

const hello = { protocolVersion: 1, agentCapabilities: {}, authMethods: [] };
const refusal = { code: -32000 - 1, message: 'no' };
const signIn = { code: AUTH_REQUIRED, message: 'sign in' };
const begun = () => new Session().sendRequest(AGENT_METHODS.initialize).answers(hello);
const ready = () => begun().sendRequest(AGENT_METHODS.session_new).answers({ sessionId: 's' });
const prompted = () => ready().sendRequest(AGENT_METHODS.session_prompt, {}, 'prm_1');
const askPermission = (fold_session: Session, id: RequestId = 1) =>
  fold_session.receiveRequest(CLIENT_METHODS.session_request_permission, { options: [] }, id);

test("initialize reports the agent's name and capabilities", () => {
  const fold_session = new Session().sendRequest(AGENT_METHODS.initialize);
  expect(fold_session.state).toMatchObject({ phase: 'initializing', asked_count: 1, asked: [{ id: 'q1' }] });
  fold_session.answers({
    protocolVersion: 1,
    agentInfo: { name: 'a', title: 'A', version: '1' },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: true, embeddedContext: true },
      sessionCapabilities: { resume: {} },
    },
    authMethods: [
      { id: 'key', name: 'Key' },
      { id: 'term', name: 'T', type: 'terminal', description: 'd' },
    ],
  });
  expect(fold_session.events.map(({ kind }) => kind)).toEqual(['initialized', 'answered']);
  expect(fold_session.state).toMatchObject({
    phase: 'initializing',
    asked: [],
    agent: { name: 'a', title: 'A', version: '1' },
    capabilities: { load: true, resume: true, image: true, audio: true, embedded_context: true },
    auth_methods: [
      { id: 'key', name: 'Key', description: null, type: 'agent' },
      { id: 'term', name: 'T', description: 'd', type: 'terminal' },
    ],
  });
});

test('agent info of an unexpected form is ignored', () => {
  const odd = { agentInfo: 'me', agentCapabilities: { loadSession: 1, promptCapabilities: [] } };
  const fold_session = new Session().sendRequest(AGENT_METHODS.initialize);
  fold_session.answers({ protocolVersion: 1, ...odd, authMethods: { id: 'x' } });
  expect(fold_session.state).toMatchObject({
    agent: null,
    capabilities: initialState.capabilities,
    auth_methods: [],
  });
  const nameless = new Session().sendRequest(AGENT_METHODS.initialize);
  nameless.answers({ protocolVersion: 1, agentInfo: { name: 7 }, authMethods: [null, { id: 'x' }, 'y'] });
  expect(nameless.state).toMatchObject({ agent: { name: '', title: null, version: null }, auth_methods: [] });
});

test.each([
  [{ protocolVersion: 2 }, 'the agent speaks ACP version 2, this service version 1'],
  [{ protocolVersion: '1' }, 'the agent speaks no version of ACP, this service version 1'],
  [null, 'the agent speaks no version of ACP, this service version 1'],
  [undefined, 'the agent speaks no version of ACP, this service version 1'],
])('an agent with another protocol version fails', (result, message) => {
  const { state, events } = new Session().sendRequest(AGENT_METHODS.initialize).answers(result);
  expect(state.phase).toBe('failed');
  expect(events[0]).toEqual({ kind: 'failed', code: 'acp_version_unsupported', message });
});

test('an agent that rejects initialize fails', () => {
  const { state, events } = new Session().sendRequest(AGENT_METHODS.initialize).answers(null, refusal);
  expect(state.phase).toBe('failed');
  expect(events).toMatchObject([{ kind: 'failed', code: 'acp_initialize_failed' }, { kind: 'answered' }]);
});

test('a new session has the id, modes and options from the agent’s response', () => {
  const fold_session = begun().sendRequest(AGENT_METHODS.session_new);
  expect(fold_session.state).toMatchObject({ phase: 'opening', acp_session_id: null });
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, 'x'], more: 1 };
  fold_session.answers({ sessionId: 's', modes, configOptions: [{ id: 'model' }, null] });
  expect(fold_session.state).toMatchObject({
    phase: 'ready',
    acp_session_id: 's',
    modes: { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }] },
    config_options: [{ id: 'model' }],
  });
  expect(fold_session.events[0]).toEqual({ kind: 'opened', method: AGENT_METHODS.session_new });
  expect(begun().sendRequest(AGENT_METHODS.session_new).answers({ sessionId: 7 })).toMatchObject({
    state: { phase: 'failed' },
    events: [{ kind: 'failed', code: 'acp_session_failed' }, { kind: 'answered' }],
  });
});

test.each([AGENT_METHODS.session_load, AGENT_METHODS.session_resume])(
  '%s continues the requested session',
  (method) => {
    const fold_session = begun().sendRequest(method, { sessionId: 'old' }).answers(null);
    expect(fold_session.state).toMatchObject({ phase: 'ready', acp_session_id: 'old' });
    expect(fold_session.events[0]).toEqual({ kind: 'opened', method });
    const failed = begun().sendRequest(method, { sessionId: 'old' }).answers(null, refusal);
    expect(failed.state).toMatchObject({ phase: 'opening', acp_session_id: null });
    expect(failed.events[0]).toEqual({ kind: 'open_failed', method, error: refusal });
  },
);

test('updates while a session is loading are marked as replayed', () => {
  const fold_session = begun().sendRequest(AGENT_METHODS.session_load, { sessionId: 'old' });
  expect(fold_session.update({ sessionUpdate: 'agent_message_chunk' }).replay).toBe(true);
  expect(fold_session.answers({}).update({ sessionUpdate: 'agent_message_chunk' }).replay).toBe(false);
});

test('a session that cannot be opened is reported and fails', () => {
  const { state, events } = begun().sendRequest(AGENT_METHODS.session_new).answers(null, refusal);
  expect(state.phase).toBe('failed');
  expect(events.map(({ kind }) => kind)).toEqual(['open_failed', 'failed', 'answered']);
});

test('a session that needs a sign-in opens after the sign-in', () => {
  const fold_session = begun().sendRequest(AGENT_METHODS.session_new).answers(null, signIn);
  expect(fold_session.state.phase).toBe('auth_required');
  expect(fold_session.events[0]).toEqual({ kind: 'auth_required' });
  expect(fold_session.sendRequest(AGENT_METHODS.authenticate).state.phase).toBe('authenticating');
  expect(fold_session.answers(null, refusal).state.phase).toBe('auth_required');
  expect(fold_session.events).toMatchObject([{ kind: 'answered', error: refusal }]);
  expect(fold_session.sendRequest(AGENT_METHODS.authenticate).answers({}).state.phase).toBe('opening');
  expect(fold_session.events[0]).toEqual({ kind: 'authenticated' });
  const resumed = begun()
    .sendRequest(AGENT_METHODS.session_resume, { sessionId: 'old' })
    .answers(null, signIn);
  expect(resumed.state).toMatchObject({ phase: 'auth_required', acp_session_id: null });
});

test('a late answer to a sign-in that was repeated counts only if the agent accepts it', () => {
  const twice = () =>
    begun()
      .sendRequest(AGENT_METHODS.session_new)
      .answers(null, signIn)
      .sendRequest(AGENT_METHODS.authenticate, {}, 'old')
      .sendRequest(AGENT_METHODS.authenticate, {}, 'new');
  const refused = twice().receiveAnswer('old', null, refusal);
  expect(refused.state.phase).toBe('authenticating');
  expect(refused.receiveAnswer('new', {}).state.phase).toBe('opening');
  const unanswered = twice().receiveAnswer('new', null, refusal);
  expect(unanswered.state.phase).toBe('auth_required');
  expect(unanswered.receiveAnswer('old', {}).state.phase).toBe('opening');
  const late = twice().receiveAnswer('old', {}).receiveAnswer('new', null, refusal);
  expect(late.state.phase).toBe('opening');
  expect(late.events.map(({ kind }) => kind)).toEqual(['answered']);
  const both = twice().receiveAnswer('old', {}).receiveAnswer('new', {});
  expect(both.events.map(({ kind }) => kind)).toEqual(['answered']);
});

test('a session continues after a second sign-in', () => {
  const fold_session = prompted().answers(null, signIn);
  expect(fold_session.state).toMatchObject({ phase: 'auth_required', turn: null, acp_session_id: 's' });
  expect(fold_session.events.map(({ kind }) => kind)).toEqual(['auth_required', 'turn_ended', 'answered']);
  expect(fold_session.sendRequest(AGENT_METHODS.authenticate).answers({}).state.phase).toBe('ready');
});

test('a turn begins with its prompt and ends with the response to it', () => {
  const fold_session = prompted();
  expect(fold_session.state.turn).toEqual({ prompt_id: 'prm_1' });
  expect(fold_session.cancel().state.turn).toEqual({ prompt_id: 'prm_1' });
  fold_session.answers({ stopReason: 'cancelled' });
  expect(fold_session.state.turn).toBeNull();
  expect(fold_session.events[0]).toEqual({
    kind: 'turn_ended',
    prompt_id: 'prm_1',
    stop_reason: 'cancelled',
    error: null,
  });
  expect(prompted().answers(null, refusal).events[0]).toMatchObject({ stop_reason: null, error: refusal });
  expect(ready().cancel().state.turn).toBeNull();
});

test('a response without a request changes nothing', () => {
  const { state } = prompted();
  const message = { kind: 'response', id: 'nobody', result: { stopReason: 'end_turn' } } as const;
  expect(fold(state, 'from_agent', message)).toEqual({ state, replay: false, source: null, events: [] });
  expect(fold(state, 'from_agent', message).state).toBe(state);
  expect(fold(state, 'from_agent', { ...message, id: null }).state).toBe(state);
});

test('requests of the agent are numbered, whatever their ids', () => {
  const fold_session = askPermission(askPermission(prompted()));
  expect(fold_session.state).toMatchObject({
    received_count: 2,
    received: [
      { number: 1, id: 1 },
      { number: 2, id: 1 },
    ],
  });
  expect(fold_session.events).toMatchObject([
    { kind: 'permission_requested', request: { number: 2 }, permission: { options: [] } },
  ]);
  expect(fold_session.respond().state.received).toMatchObject([{ number: 2 }]);
  expect(fold_session.respond('1').state.received).toHaveLength(1);
  expect(fold_session.respond().respond().state.received).toEqual([]);
});

test('an unreadable permission request is reported; unknown and excess requests are rejected', () => {
  const fold_session = prompted().receiveRequest(CLIENT_METHODS.session_request_permission, { options: 1 });
  expect(fold_session.events).toMatchObject([
    { kind: 'permission_unreadable', request: { number: 1, id: 1 } },
  ]);
  const other = prompted().receiveRequest(CLIENT_METHODS.fs_read_text_file, {}, 'x');
  expect(other.events).toMatchObject([
    { kind: 'refused', request: { id: 'x' }, error: rpcErrors.methodNotFound },
  ]);
  const many = prompted();
  for (let n = 1; n <= limits.acp_open_requests_max; n++) askPermission(many, n);
  expect(many.events[0]).toMatchObject({ kind: 'permission_requested' });
  expect(askPermission(many, 'late').events).toMatchObject([
    { kind: 'refused', error: rpcErrors.tooManyRequests },
  ]);
  expect(many.refuse('late', rpcErrors.tooManyRequests).state.received).toHaveLength(
    limits.acp_open_requests_max,
  );
});

test('excess requests are not kept, even if their refusal cannot be sent', () => {
  const many = prompted();
  for (let n = 1; n <= limits.acp_open_requests_max; n++) askPermission(many, n);
  const { received } = many.state;
  for (let n = 1; n <= 10; n++) askPermission(many, n);
  expect(many.state).toMatchObject({ received, received_count: received.length + 10 });
  expect(many.events).toMatchObject([{ kind: 'refused', request: { number: received.length + 10, id: 10 } }]);
  expect(many.refuse(10, rpcErrors.tooManyRequests).state.received).toEqual(received);
  expect(askPermission(many.respond(10), 'next').events).toMatchObject([{ kind: 'permission_requested' }]);
});

test('requests are withdrawn by id', () => {
  const fold_session = askPermission(askPermission(prompted(), 'x'), 'y');
  fold_session.receiveNotification(PROTOCOL_METHODS.cancel_request, { requestId: 'x' });
  expect(fold_session.events).toMatchObject([{ kind: 'withdrawn', id: 'x', requests: [{ number: 1 }] }]);
  for (const params of [null, {}, { requestId: {} }, 7]) {
    expect(fold_session.receiveNotification(PROTOCOL_METHODS.cancel_request, params).events).toEqual([]);
  }
  fold_session.receiveNotification(PROTOCOL_METHODS.cancel_request, { requestId: 'never' });
  expect(fold_session.events).toEqual([{ kind: 'withdrawn', id: 'never', requests: [] }]);
});

test('updates set the plan, commands, mode, options, title and usage', () => {
  const fold_session = ready();
  fold_session.update({ sessionUpdate: 'plan', entries: [{ content: 'a', status: 'pending' }, 7] });
  fold_session.update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'b' }] });
  fold_session.update({ sessionUpdate: 'current_mode_update', currentModeId: 'fast' });
  fold_session.update({ sessionUpdate: 'config_option_update', configOptions: [{ id: 'c' }] });
  fold_session.update({ sessionUpdate: 'session_info_update', title: 'T' });
  fold_session.update({
    sessionUpdate: 'usage_update',
    used: 1,
    size: 2,
    cost: { amount: 0.5, currency: 'EUR' },
  });
  expect(fold_session.state).toMatchObject({
    plan: [{ content: 'a', status: 'pending' }],
    commands: [{ name: 'b' }],
    modes: { currentModeId: 'fast', availableModes: [] },
    config_options: [{ id: 'c' }],
    title: 'T',
    usage: { used: 1, size: 2, cost: { amount: 0.5, currency: 'EUR' } },
  });
  fold_session.update({ sessionUpdate: 'session_info_update', title: null });
  fold_session.update({ sessionUpdate: 'usage_update', used: 3, size: 4, cost: 'much' });
  expect(fold_session.state).toMatchObject({ title: null, usage: { used: 3, size: 4 } });
  expect(fold_session.state.usage).not.toHaveProperty('cost');
});

test('updates of an unknown kind or form change nothing', () => {
  const { state } = ready();
  const updates: unknown[] = [
    null,
    'plan',
    [],
    {},
    { sessionUpdate: 'never_heard_of', x: 1 },
    { sessionUpdate: 'current_mode_update', currentModeId: 7 },
    { sessionUpdate: 'config_option_update', configOptions: {}, modes: [] },
    { sessionUpdate: 'session_info_update' },
    { sessionUpdate: 'usage_update', used: '1', size: 2 },
    { sessionUpdate: 'usage_update', used: Number.POSITIVE_INFINITY, size: 2 },
    { sessionUpdate: '__proto__' },
  ];
  for (const update of updates) expect(new Session(state).update(update).state).toEqual(state);
  expect(new Session(state).receiveNotification('never/heard_of', {}).state).toBe(state);
  expect(new Session(state).receiveNotification(CLIENT_METHODS.session_update, null).state).toBe(state);
});

test('a new mode takes effect when the agent confirms it', () => {
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'auto' }] };
  const open = () => begun().sendRequest(AGENT_METHODS.session_new).answers({ sessionId: 's', modes });
  const set = () => open().sendRequest(AGENT_METHODS.session_set_mode, { modeId: 'auto' });
  expect(set().state.modes?.currentModeId).toBe('ask');
  expect(set().answers({}).state.modes?.currentModeId).toBe('auto');
  expect(set().answers(null, refusal)).toMatchObject({
    state: { modes: { currentModeId: 'ask' } },
    events: [{ kind: 'answered', asked: { method: AGENT_METHODS.session_set_mode }, error: refusal }],
  });
  expect(
    ready().sendRequest(AGENT_METHODS.session_set_mode, { modeId: 'x' }).answers({}).state.modes,
  ).toBeNull();
  const options = open().sendRequest(AGENT_METHODS.session_set_config_option, { configId: 'm', value: 'x' });
  expect(options.answers({ configOptions: [{ id: 'm' }] }).state.config_options).toEqual([{ id: 'm' }]);
});

test('bounds every part of the state, and keeps the first items', () => {
  const entry = { content: 'x'.repeat(1_000) };
  const fold_session = ready().update({ sessionUpdate: 'plan', entries: Array(5_000).fill(entry) });
  expect(JSON.stringify(fold_session.state.plan).length).toBeLessThanOrEqual(
    limits.acp_state_list_chars_max + 1_000,
  );
  expect(fold_session.state.plan.length).toBeGreaterThan(50);
  const commands = Array.from({ length: sharedLimits.acp_items_max + 5 }, (_, i) => ({ i }));
  fold_session.update({ sessionUpdate: 'available_commands_update', availableCommands: commands });
  expect(fold_session.state.commands).toHaveLength(sharedLimits.acp_items_max);
  fold_session.update({
    sessionUpdate: 'plan',
    entries: [{ content: 'x'.repeat(limits.acp_state_list_chars_max) }],
  });
  expect(fold_session.state.plan).toEqual([]);
  const title = 'x'.repeat(2 * sharedLimits.acp_text_chars_max);
  expect(fold_session.update({ sessionUpdate: 'session_info_update', title }).state.title).toHaveLength(
    sharedLimits.acp_text_chars_max,
  );
  const authMethods = Array.from({ length: 2_000 }, () => ({ id: title, name: title, description: title }));
  const methods = new Session()
    .sendRequest(AGENT_METHODS.initialize)
    .answers({ protocolVersion: 1, authMethods });
  expect(JSON.stringify(methods.state).length).toBeLessThan(2 * limits.acp_state_list_chars_max);
});

const modesOf = (currentModeId: string) => ({ modes: { currentModeId, availableModes: [] } });
const writeCall = {
  sessionUpdate: 'tool_call',
  toolCallId: 'c1',
  kind: 'edit',
  title: 'Write',
  status: 'completed',
};

test('a call that acts without a request is observed, except in a replay', () => {
  expect(prompted().update(writeCall).state.acting).toMatchObject({ unasked: 'Write', calls: [] });
  const loading = begun().sendRequest(AGENT_METHODS.session_load, { sessionId: 's' }).update(writeCall);
  expect(loading.replay).toBe(true);
  expect(loading.answers({}).state.acting).toEqual(noObservations);
});

test('a permission request is observed, and so is a permanent permission', () => {
  const options = ['allow_once', 'allow_always'].map((kind) => ({ optionId: kind, name: kind, kind }));
  const permit = (toolCallId: string, optionId: string) =>
    prompted()
      .receiveRequest(CLIENT_METHODS.session_request_permission, {
        toolCall: { toolCallId, kind: 'edit' },
        options,
      })
      .respond(1, { outcome: { outcome: 'selected', optionId } });
  const once = permit('c1', 'allow_once');
  expect(once.update(writeCall).state.acting).toEqual({ ...noObservations, requested: true });
  expect(once.update({ ...writeCall, toolCallId: 'c2' }).state.acting.unasked).toBe('Write');
  expect(permit('c1', 'allow_always').update({ ...writeCall, toolCallId: 'c2' }).state.acting).toMatchObject({
    requested: true,
    unasked: null,
  });
});

test('a mode change, however it is reported, restarts the observation', () => {
  const option = (currentValue: string) => ({
    configOptions: [
      { id: 'mode', type: 'select', currentValue, options: [{ value: 'auto' }, { value: 'ask' }] },
    ],
  });
  const fold_session = begun()
    .sendRequest(AGENT_METHODS.session_new)
    .answers({ sessionId: 's', ...modesOf('auto'), ...option('auto') });
  fold_session.update(writeCall).update({ sessionUpdate: 'current_mode_update', currentModeId: 'auto' });
  expect(fold_session.state.acting.unasked).toBe('Write');
  fold_session.sendRequest(AGENT_METHODS.session_set_mode, { modeId: 'ask' }).answers({});
  expect(fold_session.state.acting).toEqual(noObservations);
  expect(fold_session.state.config_options).toMatchObject([{ currentValue: 'ask' }]);
  fold_session.update(writeCall).update({ sessionUpdate: 'config_option_update', ...option('auto') });
  expect(fold_session.state).toMatchObject({ acting: noObservations, modes: { currentModeId: 'auto' } });
});

test('an elicitation counts as a request and leaves the state once it is answered', () => {
  const params = { mode: 'form', message: 'Which?', requestedSchema: { type: 'object' } };
  const fold_session = prompted().receiveRequest(CLIENT_METHODS.elicitation_create, params, 'e');
  const request = { number: 1, id: 'e' };
  expect(fold_session.state).toMatchObject({ received_count: 1, received: [request] });
  expect(fold_session.events).toMatchObject([
    { kind: 'input_requested', request, elicitation: { mode: 'form' } },
  ]);
  fold_session.receiveRequest(CLIENT_METHODS.elicitation_create, { ...params, mode: 'voice' }, 'f');
  expect(fold_session.events).toMatchObject([{ kind: 'input_unreadable', request: { number: 2, id: 'f' } }]);
  fold_session.receiveNotification(CLIENT_METHODS.elicitation_complete, { elicitationId: 'x' });
  expect(fold_session.events).toEqual([{ kind: 'input_completed', acp_id: 'x' }]);
  const { received: _, received_count: __, now, ...rest } = fold_session.respond('e').respond('f').state;
  expect(prompted().state).toMatchObject(rest);
  expect(now).toBe('Which?');
  expect(fold_session.state.received).toEqual([]);
});

test('the state has the title of the last tool call or request, until the next prompt', () => {
  const fold_session = prompted();
  const call = { sessionUpdate: 'tool_call', toolCallId: 'c1', title: 'read cart.ts' };
  expect(fold_session.update(call).state.now).toBe('read cart.ts');
  const ended = { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'completed' };
  expect(fold_session.update(ended).state.now).toBe('read cart.ts');
  const options = [{ optionId: 'o', name: 'Allow', kind: 'allow_once' }];
  const params = { toolCall: { toolCallId: 'c2', title: 'npm publish' }, options };
  fold_session.receiveRequest(CLIENT_METHODS.session_request_permission, params, 'p');
  expect(fold_session.state.now).toBe('npm publish');
  expect(fold_session.update({ ...call, toolCallId: 'c3', title: 'x'.repeat(5_000) }).state.now).toHaveLength(
    4_096,
  );
});

const announced = () =>
  prompted().update({ sessionUpdate: 'subagent_update', sessionId: 'child', title: 'explorer' });

test('a sub-agent has its own mode, plan, usage, title and commands', () => {
  const fold_session = announced().update({ sessionUpdate: 'current_mode_update', currentModeId: 'ask' });
  const { state } = fold_session;
  for (const session of ['child', 'nobody announced it']) {
    fold_session
      .update({ sessionUpdate: 'current_mode_update', currentModeId: 'auto' }, session)
      .update({ sessionUpdate: 'config_option_update', configOptions: [{ id: 'mode' }] }, session)
      .update({ sessionUpdate: 'plan', entries: [{ content: 'x' }] }, session)
      .update({ sessionUpdate: 'usage_update', used: 1, size: 2 }, session)
      .update({ sessionUpdate: 'session_info_update', title: 'x' }, session)
      .update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'x' }] }, session);
  }
  expect(fold_session.state).toBe(state);
});

test('an action of a sub-agent counts as the agent’s; its call ids do not collide with those of others', () => {
  const acts = (session: string) => announced().update(writeCall, session).state.acting.unasked;
  expect([acts('child'), acts('nobody announced it')]).toEqual(['Write', 'Write']);
  const permit = announced().receiveRequest(CLIENT_METHODS.session_request_permission, {
    ...{ sessionId: 'child', toolCall: { toolCallId: 'c1', kind: 'edit' }, options: [] },
  });
  expect(permit.events).toMatchObject([
    { kind: 'permission_requested', requester: { id: 'child', name: 'explorer', unknown_session: false } },
  ]);
  expect(permit.update(writeCall, 'child').state.acting.unasked).toBeNull();
  expect(permit.update(writeCall).state.acting.unasked).toBe('Write');
});

test('a turn ends with the response to its prompt, whatever a sub-agent does; a new session forgets the sub-agents', () => {
  const idle = { state: 'idle', stopReason: 'end_turn' };
  const fold_session = announced().update({
    sessionUpdate: 'subagent_update',
    sessionId: 'child',
    state: idle,
  });
  expect(fold_session.state.turn).toEqual({ prompt_id: 'prm_1' });
  fold_session.answers({ stopReason: 'end_turn' });
  expect(fold_session.state).toMatchObject({ turn: null, subagents: [{ id: 'child', status: 'idle' }] });
  expect(fold_session.sendRequest(AGENT_METHODS.session_new).state.subagents).toEqual([]);
});
