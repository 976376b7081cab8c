import { AGENT_METHODS, CLIENT_METHODS } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { limits as sharedLimits } from '../base/limits.ts';
import { noObservations, recordCall } from './acting.ts';
import type { Direction } from './fold.ts';
import { limits } from './limits.ts';
import type { Message } from './message.ts';
import { type AcpState, initialState } from './state.ts';
import { foldFrame } from './v2/fold.ts';

/** In JSON, a control character takes six characters. */
const text = (n: number, chars: number = sharedLimits.acp_text_chars_max) => `${n}`.padEnd(chars, '\u0001');
const size = (value: unknown) => JSON.stringify(value).length;
const list = Array.from({ length: 2 * sharedLimits.acp_items_max }, (_, n) => ({
  ...{ id: text(n, 1_000), name: text(n, 1_000) },
}));
const options = Array.from({ length: limits.review_options_max }, (_, n) => ({
  ...{ optionId: text(n), name: text(n), kind: 'allow_always' },
}));

/** A session whose agent makes each part of its state as large as it can. */
class HostileSession {
  state: AcpState = initialState;

  fold(direction: Direction, message: Message): void {
    this.state = foldFrame(this.state, direction, message).state;
    expect(size(this.state)).toBeLessThanOrEqual(limits.acp_state_chars_max);
  }

  call(method: string, result: object, params: object = {}): void {
    const id = `q${this.state.asked_count}`;
    this.fold('to_agent', { kind: 'request', id, method, params });
    this.fold('from_agent', { kind: 'response', id, result });
  }

  update(update: object): void {
    const params = { sessionId: text(0), update };
    this.fold('from_agent', { kind: 'notification', method: CLIENT_METHODS.session_update, params });
  }

  ask(n: number): void {
    const toolCall = { toolCallId: text(n), kind: text(n), title: text(n) };
    const params = { sessionId: text(0), toolCall, options: n % 2 === 0 ? options : options.slice(0, 1) };
    const method = CLIENT_METHODS.session_request_permission;
    this.fold('from_agent', { kind: 'request', id: n, method, params });
  }
}

test('the state of a session whose agent fills every part of it is bounded', () => {
  const session = new HostileSession();
  const agentInfo = { name: text(0), title: text(0), version: text(0) };
  session.call(AGENT_METHODS.initialize, { protocolVersion: 1, agentInfo, authMethods: list });
  const modes = { currentModeId: text(0), availableModes: list };
  session.call(AGENT_METHODS.session_new, { sessionId: text(0), modes, configOptions: list });
  session.update({ sessionUpdate: 'available_commands_update', availableCommands: list });
  session.update({ sessionUpdate: 'plan', entries: list });
  session.update({ sessionUpdate: 'session_info_update', title: text(0) });
  session.update({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 1, currency: text(0) } });
  const acted = { toolCallId: 'c', kind: 'edit', title: text(0), status: 'completed' };
  session.update({ sessionUpdate: 'tool_call', ...acted });
  for (let n = 0; n < limits.subagents_max; n++) {
    const sessionId = text(n, limits.subagent_id_chars_max);
    session.update({ sessionUpdate: 'subagent_update', sessionId, title: text(n), description: text(n) });
  }
  for (let n = 0; n < limits.acp_open_requests_max; n++) session.ask(n);
  const { received, subagents, acting, auth_methods, modes: found, ...rest } = session.state;
  const reported = [auth_methods, found!.availableModes, rest.config_options, rest.commands, rest.plan];
  for (const one of [received, subagents, acting.calls, ...reported]) {
    expect(one).not.toEqual([]);
    expect(size(one)).toBeLessThan(limits.acp_state_list_chars_max + 1_000);
  }
  expect(received).toHaveLength(limits.acp_open_requests_max);
  expect(received.filter(({ always }) => always)).toMatchObject([{ number: 2 }, { number: 4 }]);
});

test('an oversized state of an earlier version accepts requests again once it fits', () => {
  const always = options.map(({ optionId }) => optionId);
  const state = { ...initialState, received: [{ number: 1, id: 'old', always }], received_count: 1 };
  const request = {
    kind: 'request',
    id: 'new',
    method: CLIENT_METHODS.fs_read_text_file,
    params: {},
  } as const;
  expect(foldFrame(state, 'from_agent', request).state.received).toEqual(state.received);
  const result = { outcome: { outcome: 'selected', optionId: always[7] } };
  const answered = foldFrame(state, 'to_agent', { kind: 'response', id: 'old', result }).state;
  expect(answered).toMatchObject({ received: [], acting: { allowed_always: true } });
  expect(foldFrame(answered, 'from_agent', request).state.received).toEqual([{ number: 2, id: 'new' }]);
});

test('requests with long ids are refused when they do not fit', () => {
  let state = initialState;
  for (let n = 0; n < limits.acp_open_requests_max; n++) {
    const message = { kind: 'request', id: text(n), method: CLIENT_METHODS.fs_read_text_file } as const;
    state = foldFrame(state, 'from_agent', { ...message, params: {} }).state;
  }
  expect(state.received_count).toBe(limits.acp_open_requests_max);
  expect(state.received).toMatchObject([{ number: 1 }, { number: 2 }]);
});

test('the oldest calls with long ids are dropped', () => {
  const call = (n: number) => ({ toolCallId: text(n), kind: 'edit', title: 'x' });
  const acting = [1, 2, 3, 4].map(call).reduce(recordCall, noObservations);
  expect(acting.calls.map(({ id }) => id[0])).toEqual(['3', '4']);
});
