import { describe, expect, test } from 'vitest';
import { limits } from './limits.ts';
import {
  findRequester,
  findSource,
  type Source,
  type Subagent,
  scopedCall,
  updateSubagents,
} from './subagents.ts';

const open = { acp_session_id: 'main', subagents: [] as Subagent[] };
const announce = (id: unknown, more: object = {}) => ({
  sessionUpdate: 'subagent_update',
  sessionId: id,
  ...more,
});
const child: Source = { id: 'child', by: 'session' };

/** The sub-agents after these updates, each with its source. */
function seen(...updates: [Source, object][]): Subagent[] {
  return updates.reduce<Subagent[]>(
    (subagents, [source, update]) => updateSubagents({ ...open, subagents }, source, update),
    [],
  );
}

describe('a sub-agent with a session', () => {
  test('is announced with its name, description and state', () => {
    const announcement = announce('child', {
      title: 'explorer',
      description: 'Find the test',
      state: { state: 'running' },
    });
    expect(seen([null, announcement])).toEqual([
      {
        ...{
          id: 'child',
          has_session: true,
          parent_id: null,
          name: 'explorer',
          description: 'Find the test',
        },
        ...{ status: 'running', stop_reason: null },
      },
    ]);
  });

  test('keeps fields that an update omits, and clears those that are null', () => {
    const first = announce('child', { title: 'a', description: 'b', state: { state: 'requires_action' } });
    const [kept] = seen([null, first], [null, announce('child')]);
    expect(kept).toMatchObject({ name: 'a', description: 'b', status: 'requires_action' });
    const [cleared] = seen(
      [null, first],
      [null, announce('child', { title: null, description: null, state: null })],
    );
    expect(cleared).toMatchObject({ name: null, description: null, status: 'unknown', stop_reason: null });
  });

  test.each([
    [{ state: 'idle', stopReason: 'end_turn' }, 'idle', 'end_turn'],
    [{ state: 'idle', stopReason: 'error', error: { code: 1 } }, 'idle', 'error'],
    [{ state: 'idle' }, 'idle', null],
    [{ state: 'running', stopReason: 'end_turn' }, 'running', null],
    [{ state: 'made up' }, 'unknown', null],
    [{ state: 'toString' }, 'unknown', null],
    [17, 'unknown', null],
    ['completed', 'idle', 'end_turn'],
    ['cancelled', 'idle', 'cancelled'],
    ['disconnected', 'unknown', null],
  ])('that reports %j is %s, because of %s', (state, status, stop_reason) => {
    expect(seen([null, announce('child', { state })])).toMatchObject([{ status, stop_reason }]);
  });

  test('accepts updates only from the session that created it, and never changes its parent', () => {
    const [first, second] = seen(
      [null, announce('child', { title: 'mine' })],
      [child, announce('grandchild')],
      [{ id: 'grandchild', by: 'session' }, announce('child', { title: 'yours' })],
      [null, announce('grandchild', { title: 'yours' })],
    );
    expect(first).toMatchObject({ id: 'child', parent_id: null, name: 'mine' });
    expect(second).toMatchObject({ id: 'grandchild', parent_id: 'child', name: null });
  });

  test('cannot be the main session or its own parent, or be announced in an unknown session', () => {
    const unknown: Source = { id: 'x', by: 'unknown' };
    expect(seen([null, announce('main')], [child, announce('child')], [unknown, announce('y')])).toEqual([]);
    expect(seen([null, announce('')], [null, announce(7)], [null, announce('x'.repeat(300))])).toEqual([]);
  });
});

describe('a sub-agent within the agent’s session', () => {
  const launch = {
    sessionUpdate: 'tool_call',
    toolCallId: 'c1',
    title: 'Task',
    status: 'pending',
    rawInput: { subagent_type: 'Explore', description: 'Find the test', prompt: 'Look' },
  };
  const by = (id: string): Source => ({ id, by: 'call' });

  test('has the name and the state of the tool call that launched it', () => {
    const [one] = seen([null, launch]);
    expect(one).toEqual({
      ...{ id: 'c1', has_session: false, parent_id: null, name: 'Explore', description: 'Find the test' },
      ...{ status: 'running', stop_reason: null },
    });
    const end = (status: string) => ({ sessionUpdate: 'tool_call_update', toolCallId: 'c1', status });
    expect(seen([null, launch], [null, end('completed')])[0]).toMatchObject({ stop_reason: 'end_turn' });
    expect(seen([null, launch], [null, end('failed')])[0]).toMatchObject({ stop_reason: 'error' });
  });

  test('is recognized by its mark alone, and gets its name when its tool call arrives', () => {
    const marked = { sessionUpdate: 'agent_message_chunk', _meta: { subagentType: 'coder' } };
    expect(seen([by('c1'), marked])).toMatchObject([{ id: 'c1', name: 'coder', status: 'running' }]);
    expect(seen([by('c1'), {}], [null, launch])).toMatchObject([{ id: 'c1', name: 'Explore' }]);
  });

  test('belongs to the sub-agent whose tool call launched it', () => {
    const inner = { ...launch, toolCallId: 'c2' };
    expect(seen([null, launch], [by('c1'), inner])).toMatchObject([
      { id: 'c1', parent_id: null },
      { id: 'c2', parent_id: 'c1' },
    ]);
  });

  test('is not created by other tool calls, or if the agent announces sessions', () => {
    expect(seen([null, { ...launch, rawInput: { command: 'ls' } }], [child, launch])).toEqual([]);
    const before = seen([null, announce('c1', { title: 'a session' })]);
    expect(updateSubagents({ ...open, subagents: before }, null, launch)).toBe(before);
  });
});

describe('a message', () => {
  const known = { ...open, subagents: seen([null, announce('child')]) };
  const marked = (mark: object) => ({ update: { _meta: mark }, sessionId: 'main' });

  test.each<[unknown, Source]>([
    [{ sessionId: 'main', update: {} }, null],
    [{ update: {} }, null],
    [null, null],
    [{ sessionId: 'child', update: {} }, child],
    [
      { sessionId: 'other', update: {} },
      { id: 'other', by: 'unknown' },
    ],
    [marked({ claudeCode: { parentToolUseId: 'c1' } }), { id: 'c1', by: 'call' }],
    [marked({ parentToolCallId: 'c1', subagentType: 'x' }), { id: 'c1', by: 'call' }],
    [marked({ claudeCode: { parentToolUseId: null }, parentToolCallId: 7 }), null],
    [
      { sessionId: 'main', toolCall: { _meta: { claudeCode: { parentToolUseId: 'c1' } } } },
      { id: 'c1', by: 'call' },
    ],
    [{ ...marked({ claudeCode: { parentToolUseId: 'c1' } }), sessionId: 'child' }, child],
  ])('%j is from %j', (params, source) => {
    expect(findSource(known, params)).toEqual(source);
  });

  test('counts as the agent’s own before a session is open, whatever session it names', () => {
    expect(findSource({ ...known, acp_session_id: null }, { sessionId: 'other' })).toBeNull();
    expect(findSource({ ...known, acp_session_id: null }, { sessionId: 'child' })).toEqual(child);
  });

  test('with an overlong session id is identified by the beginning of it', () => {
    const source = findSource(known, { sessionId: 'x'.repeat(5_000) });
    expect(source).toEqual({ id: 'x'.repeat(limits.subagent_id_chars_max), by: 'unknown' });
  });

  test('with a request names the sub-agent that asks', () => {
    const named = { ...open, subagents: seen([null, announce('child', { title: 'explorer' })]) };
    expect(findRequester(named, null)).toBeNull();
    expect(findRequester(named, child)).toEqual({ id: 'child', name: 'explorer', unknown_session: false });
    const unknown = { id: 'x', name: null, unknown_session: true };
    expect(findRequester(named, { id: 'x', by: 'unknown' })).toEqual(unknown);
  });
});

test('scopes tool calls to their session', () => {
  const call = { toolCallId: 'c1', kind: 'edit' };
  expect(scopedCall(null, call)).toBe(call);
  expect(scopedCall({ id: 'c0', by: 'call' }, call)).toBe(call);
  expect(scopedCall(child, call)).toEqual({ toolCallId: 'child c1', kind: 'edit' });
});

test('keeps a bounded number: the first that is not working makes room for a new one', () => {
  const running = { state: { state: 'running' } };
  const updates = Array.from({ length: limits.subagents_max }, (_, n): [Source, object] => [
    null,
    announce(`s${n}`, n === 7 ? { state: { state: 'idle' } } : running),
  ]);
  const many = seen(...updates, [null, announce('a', running)], [null, announce('b', running)]);
  expect(many).toHaveLength(limits.subagents_max);
  expect(many.map(({ id }) => id)).toEqual(expect.arrayContaining(['s1', 'a', 'b']));
  expect(many.some(({ id }) => id === 's7' || id === 's0')).toBe(false);
});

test('returns the same list if nothing changed, and bounds texts', () => {
  const announcement = announce('child', { title: 'x'.repeat(9_999), description: 'x'.repeat(9_999) });
  const subagents = seen([null, announcement]);
  expect(subagents[0]!.name).toHaveLength(limits.subagent_text_chars_max);
  expect(subagents[0]!.description).toHaveLength(limits.subagent_text_chars_max);
  expect(updateSubagents({ ...open, subagents }, null, announcement)).toBe(subagents);
  expect(updateSubagents({ ...open, subagents }, child, { sessionUpdate: 'plan' })).toBe(subagents);
});
