import { AGENT_METHODS, CLIENT_METHODS, PROTOCOL_METHODS } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { nothingObserved } from './acting.ts';
import { fold, type Happening } from './fold.ts';
import { AUTH_REQUIRED, type Message, type RequestId, rpcErrors } from './message.ts';
import { type AcpState, beginning } from './state.ts';

/** A session's conversation, spoken from a state on. */
class Talk {
  state: AcpState;
  happened: Happening[] = [];
  replay = false;

  constructor(state: AcpState = beginning) {
    this.state = state;
  }

  ask(method: string, params: unknown = {}, id: RequestId = `q${this.state.asked_count + 1}`): this {
    return this.#take('to_agent', { kind: 'request', id, method, params });
  }

  /** The agent's answer to our last open question. */
  answers(result: unknown, error?: { code: number; message: string }): this {
    const { id } = this.state.asked.at(-1)!;
    return this.#take('from_agent', { kind: 'response', id, ...(error ? { error } : { result }) });
  }

  asks(method: string, params: unknown = {}, id: RequestId = 1): this {
    return this.#take('from_agent', { kind: 'request', id, method, params });
  }

  respond(id: RequestId = 1, result: object = {}): this {
    return this.#take('to_agent', { kind: 'response', id, result });
  }

  tells(method: string, params: unknown): this {
    return this.#take('from_agent', { kind: 'notification', method, params });
  }

  update(update: unknown): this {
    return this.tells(CLIENT_METHODS.session_update, { sessionId: 's', update });
  }

  cancel(): this {
    return this.#take('to_agent', { kind: 'notification', method: AGENT_METHODS.session_cancel, params: {} });
  }

  #take(direction: 'from_agent' | 'to_agent', message: Message): this {
    ({
      state: this.state,
      happened: this.happened,
      replay: this.replay,
    } = fold(this.state, direction, message));
    return this;
  }
}

const hello = { protocolVersion: 1, agentCapabilities: {}, authMethods: [] };
const refusal = { code: -32000 - 1, message: 'no' };
const signIn = { code: AUTH_REQUIRED, message: 'sign in' };
const begun = () => new Talk().ask(AGENT_METHODS.initialize).answers(hello);
const ready = () => begun().ask(AGENT_METHODS.session_new).answers({ sessionId: 's' });
const prompted = () => ready().ask(AGENT_METHODS.session_prompt, {}, 'prm_1');
const asking = (talk: Talk, id: RequestId = 1) =>
  talk.asks(CLIENT_METHODS.session_request_permission, { options: [] }, id);

test('an agent says who it is and what it can', () => {
  const talk = new Talk().ask(AGENT_METHODS.initialize);
  expect(talk.state).toMatchObject({ phase: 'initializing', asked_count: 1, asked: [{ id: 'q1' }] });
  talk.answers({
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
  expect(talk.happened.map(({ kind }) => kind)).toEqual(['initialized', 'answered']);
  expect(talk.state).toMatchObject({
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

test('what an agent says of itself in another form counts as not said', () => {
  const odd = { agentInfo: 'me', agentCapabilities: { loadSession: 1, promptCapabilities: [] } };
  const talk = new Talk().ask(AGENT_METHODS.initialize);
  talk.answers({ protocolVersion: 1, ...odd, authMethods: { id: 'x' } });
  expect(talk.state).toMatchObject({
    agent: null,
    capabilities: beginning.capabilities,
    auth_methods: [],
  });
  const nameless = new Talk().ask(AGENT_METHODS.initialize);
  nameless.answers({ protocolVersion: 1, agentInfo: { name: 7 }, authMethods: [null, { id: 'x' }, 'y'] });
  expect(nameless.state).toMatchObject({ agent: { name: '', title: null, version: null }, auth_methods: [] });
});

test.each([
  [{ protocolVersion: 2 }, 'the agent speaks ACP version 2, this service version 1'],
  [{ protocolVersion: '1' }, 'the agent speaks no version of ACP, this service version 1'],
  [null, 'the agent speaks no version of ACP, this service version 1'],
  [undefined, 'the agent speaks no version of ACP, this service version 1'],
])('an agent of another version cannot be talked to', (result, message) => {
  const { state, happened } = new Talk().ask(AGENT_METHODS.initialize).answers(result);
  expect(state.phase).toBe('failed');
  expect(happened[0]).toEqual({ kind: 'failed', code: 'acp_version_unsupported', message });
});

test('an agent that refuses to begin cannot be talked to', () => {
  const { state, happened } = new Talk().ask(AGENT_METHODS.initialize).answers(null, refusal);
  expect(state.phase).toBe('failed');
  expect(happened).toMatchObject([{ kind: 'failed', code: 'acp_initialize_failed' }, { kind: 'answered' }]);
});

test('a new session has the id, modes and options that the agent gave it', () => {
  const talk = begun().ask(AGENT_METHODS.session_new);
  expect(talk.state).toMatchObject({ phase: 'opening', acp_session_id: null });
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, 'x'], more: 1 };
  talk.answers({ sessionId: 's', modes, configOptions: [{ id: 'model' }, null] });
  expect(talk.state).toMatchObject({
    phase: 'ready',
    acp_session_id: 's',
    modes: { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }] },
    config_options: [{ id: 'model' }],
  });
  expect(talk.happened[0]).toEqual({ kind: 'opened', method: AGENT_METHODS.session_new });
  expect(begun().ask(AGENT_METHODS.session_new).answers({ sessionId: 7 })).toMatchObject({
    state: { phase: 'failed' },
    happened: [{ kind: 'failed', code: 'acp_session_failed' }, { kind: 'answered' }],
  });
});

test.each([AGENT_METHODS.session_load, AGENT_METHODS.session_resume])(
  '%s goes on with the session asked for',
  (method) => {
    const talk = begun().ask(method, { sessionId: 'old' }).answers(null);
    expect(talk.state).toMatchObject({ phase: 'ready', acp_session_id: 'old' });
    expect(talk.happened[0]).toEqual({ kind: 'opened', method });
    const failed = begun().ask(method, { sessionId: 'old' }).answers(null, refusal);
    expect(failed.state).toMatchObject({ phase: 'opening', acp_session_id: null });
    expect(failed.happened[0]).toEqual({ kind: 'open_failed', method, error: refusal });
  },
);

test('updates while a session is loaded are its past', () => {
  const talk = begun().ask(AGENT_METHODS.session_load, { sessionId: 'old' });
  expect(talk.update({ sessionUpdate: 'agent_message_chunk' }).replay).toBe(true);
  expect(talk.answers({}).update({ sessionUpdate: 'agent_message_chunk' }).replay).toBe(false);
});

test('a session that cannot be opened is told, and cannot be talked to', () => {
  const { state, happened } = begun().ask(AGENT_METHODS.session_new).answers(null, refusal);
  expect(state.phase).toBe('failed');
  expect(happened.map(({ kind }) => kind)).toEqual(['open_failed', 'failed', 'answered']);
});

test('somebody has to sign in before a session, and opens it then', () => {
  const talk = begun().ask(AGENT_METHODS.session_new).answers(null, signIn);
  expect(talk.state.phase).toBe('auth_required');
  expect(talk.happened[0]).toEqual({ kind: 'auth_required' });
  expect(talk.ask(AGENT_METHODS.authenticate).state.phase).toBe('authenticating');
  expect(talk.answers(null, refusal).state.phase).toBe('auth_required');
  expect(talk.happened).toMatchObject([{ kind: 'answered', error: refusal }]);
  expect(talk.ask(AGENT_METHODS.authenticate).answers({}).state.phase).toBe('opening');
  expect(talk.happened[0]).toEqual({ kind: 'authenticated' });
  const resumed = begun().ask(AGENT_METHODS.session_resume, { sessionId: 'old' }).answers(null, signIn);
  expect(resumed.state).toMatchObject({ phase: 'auth_required', acp_session_id: null });
});

test('somebody has to sign in again in the middle of a session, which goes on then', () => {
  const talk = prompted().answers(null, signIn);
  expect(talk.state).toMatchObject({ phase: 'auth_required', turn: null, acp_session_id: 's' });
  expect(talk.happened.map(({ kind }) => kind)).toEqual(['auth_required', 'turn_ended', 'answered']);
  expect(talk.ask(AGENT_METHODS.authenticate).answers({}).state.phase).toBe('ready');
});

test('a turn begins with its prompt and ends with the answer to it', () => {
  const talk = prompted();
  expect(talk.state.turn).toEqual({ prompt_id: 'prm_1' });
  expect(talk.cancel().state.turn).toEqual({ prompt_id: 'prm_1' });
  talk.answers({ stopReason: 'cancelled' });
  expect(talk.state.turn).toBeNull();
  expect(talk.happened[0]).toEqual({
    kind: 'turn_ended',
    prompt_id: 'prm_1',
    stop_reason: 'cancelled',
    error: null,
  });
  expect(prompted().answers(null, refusal).happened[0]).toMatchObject({ stop_reason: null, error: refusal });
  expect(ready().cancel().state.turn).toBeNull();
});

test('an answer to what nobody asked changes nothing', () => {
  const { state } = prompted();
  const message = { kind: 'response', id: 'nobody', result: { stopReason: 'end_turn' } } as const;
  expect(fold(state, 'from_agent', message)).toEqual({ state, replay: false, happened: [] });
  expect(fold(state, 'from_agent', message).state).toBe(state);
  expect(fold(state, 'from_agent', { ...message, id: null }).state).toBe(state);
});

test('questions of the agent are counted, whatever their ids', () => {
  const talk = asking(asking(prompted()));
  expect(talk.state).toMatchObject({
    asking_count: 2,
    asking: [
      { number: 1, id: 1 },
      { number: 2, id: 1 },
    ],
  });
  expect(talk.happened).toMatchObject([
    { kind: 'asks_permission', asking: { number: 2 }, permission: { options: [] } },
  ]);
  expect(talk.respond().state.asking).toMatchObject([{ number: 2 }]);
  expect(talk.respond('1').state.asking).toHaveLength(1);
  expect(talk.respond().respond().state.asking).toEqual([]);
});

test('a permission that cannot be read is told; another question, and one too many, are refused', () => {
  const talk = prompted().asks(CLIENT_METHODS.session_request_permission, { options: 1 });
  expect(talk.happened).toMatchObject([{ kind: 'permission_unreadable', asking: { number: 1, id: 1 } }]);
  const other = prompted().asks(CLIENT_METHODS.fs_read_text_file, {}, 'x');
  expect(other.happened).toMatchObject([
    { kind: 'refused', asking: { id: 'x' }, error: rpcErrors.methodNotFound },
  ]);
  const many = prompted();
  for (let n = 1; n <= limits.acp_open_requests_max; n++) asking(many, n);
  expect(many.happened[0]).toMatchObject({ kind: 'asks_permission' });
  expect(asking(many, 'late').happened).toMatchObject([
    { kind: 'refused', error: rpcErrors.tooManyRequests },
  ]);
  expect(many.respond('late').state.asking).toHaveLength(limits.acp_open_requests_max);
});

test('questions are withdrawn by their id', () => {
  const talk = asking(asking(prompted(), 'x'), 'y');
  talk.tells(PROTOCOL_METHODS.cancel_request, { requestId: 'x' });
  expect(talk.happened).toMatchObject([{ kind: 'withdrawn', id: 'x', asking: [{ number: 1 }] }]);
  for (const params of [null, {}, { requestId: {} }, 7]) {
    expect(talk.tells(PROTOCOL_METHODS.cancel_request, params).happened).toEqual([]);
  }
  talk.tells(PROTOCOL_METHODS.cancel_request, { requestId: 'never' });
  expect(talk.happened).toEqual([{ kind: 'withdrawn', id: 'never', asking: [] }]);
});

test('what is told of plan, commands, mode, options, title and usage is what is known', () => {
  const talk = ready();
  talk.update({ sessionUpdate: 'plan', entries: [{ content: 'a', status: 'pending' }, 7] });
  talk.update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'b' }] });
  talk.update({ sessionUpdate: 'current_mode_update', currentModeId: 'fast' });
  talk.update({ sessionUpdate: 'config_option_update', configOptions: [{ id: 'c' }] });
  talk.update({ sessionUpdate: 'session_info_update', title: 'T' });
  talk.update({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 0.5, currency: 'EUR' } });
  expect(talk.state).toMatchObject({
    plan: [{ content: 'a', status: 'pending' }],
    commands: [{ name: 'b' }],
    modes: { currentModeId: 'fast', availableModes: [] },
    config_options: [{ id: 'c' }],
    title: 'T',
    usage: { used: 1, size: 2, cost: { amount: 0.5, currency: 'EUR' } },
  });
  talk.update({ sessionUpdate: 'session_info_update', title: null });
  talk.update({ sessionUpdate: 'usage_update', used: 3, size: 4, cost: 'much' });
  expect(talk.state).toMatchObject({ title: null, usage: { used: 3, size: 4 } });
  expect(talk.state.usage).not.toHaveProperty('cost');
});

test('updates of an unknown kind, or in another form, change nothing', () => {
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
  for (const update of updates) expect(new Talk(state).update(update).state).toEqual(state);
  expect(new Talk(state).tells('never/heard_of', {}).state).toBe(state);
  expect(new Talk(state).tells(CLIENT_METHODS.session_update, null).state).toBe(state);
});

test('a mode that was set is the mode once the agent says so', () => {
  const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'auto' }] };
  const open = () => begun().ask(AGENT_METHODS.session_new).answers({ sessionId: 's', modes });
  const set = () => open().ask(AGENT_METHODS.session_set_mode, { modeId: 'auto' });
  expect(set().state.modes?.currentModeId).toBe('ask');
  expect(set().answers({}).state.modes?.currentModeId).toBe('auto');
  expect(set().answers(null, refusal)).toMatchObject({
    state: { modes: { currentModeId: 'ask' } },
    happened: [{ kind: 'answered', asked: { method: AGENT_METHODS.session_set_mode }, error: refusal }],
  });
  expect(ready().ask(AGENT_METHODS.session_set_mode, { modeId: 'x' }).answers({}).state.modes).toBeNull();
  const options = open().ask(AGENT_METHODS.session_set_config_option, { configId: 'm', value: 'x' });
  expect(options.answers({ configOptions: [{ id: 'm' }] }).state.config_options).toEqual([{ id: 'm' }]);
});

test('every part of the state is bounded: what is told first is kept', () => {
  const entry = { content: 'x'.repeat(1_000) };
  const talk = ready().update({ sessionUpdate: 'plan', entries: Array(5_000).fill(entry) });
  expect(JSON.stringify(talk.state.plan).length).toBeLessThanOrEqual(limits.acp_state_chars_max + 1_000);
  expect(talk.state.plan.length).toBeGreaterThan(50);
  const commands = Array.from({ length: limits.acp_items_max + 5 }, (_, i) => ({ i }));
  talk.update({ sessionUpdate: 'available_commands_update', availableCommands: commands });
  expect(talk.state.commands).toHaveLength(limits.acp_items_max);
  talk.update({ sessionUpdate: 'plan', entries: [{ content: 'x'.repeat(limits.acp_state_chars_max) }] });
  expect(talk.state.plan).toEqual([]);
  const title = 'x'.repeat(2 * limits.acp_text_chars_max);
  expect(talk.update({ sessionUpdate: 'session_info_update', title }).state.title).toHaveLength(
    limits.acp_text_chars_max,
  );
  const authMethods = Array.from({ length: 2_000 }, () => ({ id: title, name: title, description: title }));
  const methods = new Talk().ask(AGENT_METHODS.initialize).answers({ protocolVersion: 1, authMethods });
  expect(JSON.stringify(methods.state).length).toBeLessThan(2 * limits.acp_state_chars_max);
});

const modesOf = (currentModeId: string) => ({ modes: { currentModeId, availableModes: [] } });
const wrote = {
  sessionUpdate: 'tool_call',
  toolCallId: 'c1',
  kind: 'edit',
  title: 'Write',
  status: 'completed',
};

test('a call that acts without a request is observed, but not in a part that is replayed', () => {
  expect(prompted().update(wrote).state.acting).toMatchObject({ unasked: 'Write', calls: [] });
  const loading = begun().ask(AGENT_METHODS.session_load, { sessionId: 's' }).update(wrote);
  expect(loading.replay).toBe(true);
  expect(loading.answers({}).state.acting).toEqual(nothingObserved);
});

test('a request for permission is observed, and so is the answer that allows for good', () => {
  const options = ['allow_once', 'allow_always'].map((kind) => ({ optionId: kind, name: kind, kind }));
  const asked = (toolCallId: string, optionId: string) =>
    prompted()
      .asks(CLIENT_METHODS.session_request_permission, { toolCall: { toolCallId, kind: 'edit' }, options })
      .respond(1, { outcome: { outcome: 'selected', optionId } });
  const once = asked('c1', 'allow_once');
  expect(once.update(wrote).state.acting).toEqual({ ...nothingObserved, requested: true });
  expect(once.update({ ...wrote, toolCallId: 'c2' }).state.acting.unasked).toBe('Write');
  expect(asked('c1', 'allow_always').update({ ...wrote, toolCallId: 'c2' }).state.acting).toMatchObject({
    requested: true,
    unasked: null,
  });
});

test('a change of the mode, however it is reported, begins a new observation', () => {
  const option = (currentValue: string) => ({
    configOptions: [
      { id: 'mode', type: 'select', currentValue, options: [{ value: 'auto' }, { value: 'ask' }] },
    ],
  });
  const talk = begun()
    .ask(AGENT_METHODS.session_new)
    .answers({ sessionId: 's', ...modesOf('auto'), ...option('auto') });
  talk.update(wrote).update({ sessionUpdate: 'current_mode_update', currentModeId: 'auto' });
  expect(talk.state.acting.unasked).toBe('Write');
  talk.ask(AGENT_METHODS.session_set_mode, { modeId: 'ask' }).answers({});
  expect(talk.state.acting).toEqual(nothingObserved);
  expect(talk.state.config_options).toMatchObject([{ currentValue: 'ask' }]);
  talk.update(wrote).update({ sessionUpdate: 'config_option_update', ...option('auto') });
  expect(talk.state).toMatchObject({ acting: nothingObserved, modes: { currentModeId: 'auto' } });
});
