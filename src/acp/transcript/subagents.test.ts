import { expect, test } from 'vitest';
import type { Fields } from '../json.ts';
import type { Item } from './items.ts';
import { bodyText } from './parts.ts';
import { toolSpans, waitSpans } from './spans.ts';
import {
  agentMessage,
  fromAgent,
  itemsOf,
  options,
  promptRequest,
  promptResponse,
  statusEvent,
  toolCall,
  toolCallUpdate,
  update,
  viewOf,
} from './testing.ts';
import type { View } from './transcript.ts';

/** An update in the session of a sub-agent. */
const of = (subagent: string, fields: Fields, more: Fields = {}) =>
  fromAgent(
    { method: 'session/update', params: { sessionId: subagent, update: fields } },
    { subagent, ...more },
  );
const chunk = (text: string) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const announce = (sessionId: string, more: Fields = {}) => ({
  sessionUpdate: 'subagent_update',
  sessionId,
  state: { state: 'running' },
  ...more,
});
const call = (toolCallId: string, more: Fields = {}) => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title: toolCallId,
  ...more,
});
/** Marked with the tool call that launched the sub-agent. */
const marked = (subagent: string, fields: Fields) => update(fields, { subagent });

/** Each item with its sub-agent. */
function summarize({ items }: View): string[] {
  return items.map((item) => `${item.subagent ?? '-'} ${word(item)}`);
}

function word(item: Item): string {
  if ('body' in item) return bodyText(item.body);
  if (item.kind === 'tool') return item.call.title;
  return item.kind === 'delegation' ? `<${item.name ?? item.id}>` : item.kind;
}

test('keeps concurrent messages of sub-agents separate and unsplit', () => {
  const view = viewOf(
    promptRequest('go'),
    update(announce('s1', { title: 'explorer' })),
    agentMessage('I '),
    of('s1', chunk('its ')),
    agentMessage('wait'),
    of('s1', call('c1')),
    of('s1', chunk('more')),
    agentMessage('.'),
    of('s1', chunk(' words')),
  );
  expect(summarize(view)).toEqual(['- go', '- <explorer>', '- I wait.', 's1 its ', 's1 c1', 's1 more words']);
});

test('a row shows the latest state of its sub-agent', () => {
  const view = viewOf(
    update(announce('s1', { title: 'a', description: 'Find it' })),
    of('s1', call('c1')),
    of('s1', call('c2')),
    of('s1', { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'completed' }),
    update(announce('s1', { title: 'b', state: { state: 'idle', stopReason: 'end_turn' } })),
  );
  expect(itemsOf(view, 'delegation')).toMatchObject([
    { id: 's1', name: 'b', description: 'Find it', status: 'idle', stop_reason: 'end_turn', tool_calls: 2 },
  ]);
});

test('a sub-agent has a separate row in each turn, with a separate count', () => {
  const view = viewOf(
    promptRequest('one', 'p1'),
    update(announce('s1', { title: 'explorer' })),
    of('s1', call('c1')),
    promptResponse('end_turn', 'p1'),
    promptRequest('two', 'p2'),
    of('s1', call('c2')),
    of('s1', call('c3')),
  );
  expect(itemsOf(view, 'delegation').map(({ turn, name, tool_calls }) => [turn, name, tool_calls])).toEqual([
    [1, 'explorer', 1],
    [2, 'explorer', 2],
  ]);
});

test('a nested sub-agent is below its parent, whichever comes first in a turn', () => {
  const view = viewOf(
    promptRequest('one', 'p1'),
    update(announce('s1', { title: 'outer' })),
    of('s1', announce('s2', { title: 'inner' })),
    promptResponse('end_turn', 'p1'),
    promptRequest('two', 'p2'),
    of('s2', chunk('again')),
  );
  expect(summarize(view)).toEqual([
    ...['- one', '- <outer>', 's1 <inner>', '- stop'],
    ...['- two', '- <outer>', 's1 <inner>', 's2 again'],
  ]);
});

test('keeps tool calls with the same id in two sessions separate; marked calls use the agent’s ids', () => {
  const view = viewOf(
    update(announce('s1')),
    toolCall('c1', { title: 'mine' }),
    of('s1', call('c1', { title: 'its' })),
    of('s1', { sessionUpdate: 'tool_call_update', toolCallId: 'c1', status: 'failed' }),
    toolCallUpdate('c1', { status: 'completed' }),
    marked('c9', call('c2')),
    toolCallUpdate('c2', { status: 'completed' }),
  );
  expect(itemsOf(view, 'tool').map(({ call, subagent, status }) => [call.title, subagent, status])).toEqual([
    ['mine', null, 'completed'],
    ['its', 's1', 'failed'],
    ['c2', 'c9', 'completed'],
  ]);
});

test('a sub-agent launched by a tool call takes its name and its end from that call', () => {
  const rawInput = { subagent_type: 'Explore', description: 'Find it' };
  const view = viewOf(
    toolCall('c1', { title: 'Task', kind: 'think', rawInput }),
    marked('c1', chunk('found')),
    toolCallUpdate('c1', { status: 'completed' }),
  );
  expect(itemsOf(view, 'delegation')).toMatchObject([
    { id: 'c1', name: 'Explore', description: 'Find it', status: 'idle', stop_reason: 'end_turn' },
  ]);
  const unknown = viewOf(marked('c1', { ...chunk('x'), _meta: { subagentType: 'coder' } }));
  expect(itemsOf(unknown, 'delegation')).toMatchObject([{ name: 'coder', status: 'running' }]);
  expect(viewOf(toolCall('c1', { rawInput })).items.map(({ kind }) => kind)).toEqual(['tool']);
});

test('a sub-agent’s mode, plan and usage are not the agent’s; those of an unknown session are labeled', () => {
  const mode = { sessionUpdate: 'current_mode_update', currentModeId: 'yolo' };
  const view = viewOf(
    update(announce('s1')),
    of('s1', mode),
    of('s1', { sessionUpdate: 'plan', entries: [{ content: 'x' }] }),
    marked('c1', { sessionUpdate: 'usage_update', used: 1, size: 2 }),
    of('s9', mode, { unknown_session: true }),
    of('s9', announce('s8'), { unknown_session: true }),
  );
  expect(view).toMatchObject({ modes: null, plan: null, usage: null });
  expect(summarize(view)).toEqual(['- <s1>', '- <s9>', 's9 unknown']);
  expect(itemsOf(view, 'delegation')[1]).toMatchObject({ id: 's9', name: null, unknown_session: true });
});

test('accepts reports on a sub-agent only from its creator, and allows no cycles', () => {
  const view = viewOf(
    update(announce('s1', { title: 'mine' })),
    of('s1', announce('s2', { title: 'inner' })),
    of('s2', announce('s1', { title: 'taken' })),
    update(announce('s2', { title: 'taken' })),
    of('s3', announce('s3')),
    of('s4', announce('s5')),
    of('s5', announce('s4', { title: 'above' })),
  );
  const heads = itemsOf(view, 'delegation').map(({ id, name, subagent }) => [id, name, subagent]);
  expect(heads).toEqual([
    ['s1', 'mine', null],
    ['s2', 'inner', 's1'],
    ['s4', null, null],
    ['s5', null, 's4'],
  ]);
});

test('permission requests and timeline entries name the sub-agent', () => {
  const sendRequest = (subagent: string, more: Fields = {}) =>
    fromAgent(
      {
        ...{ id: 1, method: 'session/request_permission' },
        params: { sessionId: subagent, toolCall: call('c1', { title: 'Write' }), options },
      },
      { subagent, review_id: `rev ${subagent}`, ...more },
    );
  const view = viewOf(
    update(announce('s1', { title: 'explorer\u202e' })),
    sendRequest('s1'),
    sendRequest('s9', { unknown_session: true }),
    of('s1', call('c2')),
    toolCall('c3'),
  );
  expect(itemsOf(view, 'permission').map(({ requester }) => requester)).toEqual([
    { id: 's1', name: 'explorer\u202e', unknown_session: false },
    { id: 's9', name: null, unknown_session: true },
  ]);
  expect(waitSpans(view.items).map(({ label }) => label)).toEqual([
    'explorer⟦U+202E⟧: Write',
    'unknown session s9: Write',
  ]);
  expect(toolSpans(view.items).map(({ label }) => label)).toEqual(['explorer⟦U+202E⟧: c2', 'c3']);
});

test('messages between agent and sub-agents name both; chunks and later versions update the same message', () => {
  const message = (more: Fields = {}) => ({
    ...{
      sessionUpdate: 'session_message',
      messageId: 'm1',
      senderSessionId: 'main',
      recipientSessionId: 's1',
    },
    content: [{ type: 'text', text: 'Please look' }],
    ...more,
  });
  const more = {
    sessionUpdate: 'session_message_chunk',
    messageId: 'm1',
    content: { type: 'text', text: '.' },
  };
  const view = viewOf(
    update(announce('s1', { title: 'explorer' })),
    update(message()),
    update(more),
    of('s1', message({ content: [{ type: 'text', text: 'a' }] })),
    of('s1', message({ content: [{ type: 'text', text: 'b' }] })),
    of('s1', message({ content: undefined, recipientMessageId: 'x' })),
    of('s1', message({ messageId: 'm2', senderSessionId: 's1', recipientSessionId: 'main' })),
  );
  const messages = itemsOf(view, 'relayed').map(({ subagent, from, to, body }) => [
    subagent,
    from,
    to,
    bodyText(body),
  ]);
  expect(messages).toEqual([
    [null, null, 'explorer', 'Please look.'],
    ['s1', null, 'explorer', 'b'],
    ['s1', 'explorer', null, 'Please look'],
  ]);
});

test('when the process ends, no sub-agent is working any more', () => {
  const view = viewOf(update(announce('s1')), of('s1', chunk('so far')), statusEvent('failed'));
  expect(itemsOf(view, 'delegation')).toMatchObject([{ status: 'unknown' }]);
  expect(itemsOf(view, 'agent_message')[0]!.ended_ts).not.toBeNull();
});

test('replayed updates set names but add no rows', () => {
  const view = viewOf(
    update(announce('s1', { title: 'explorer' }), { replay: true }),
    of('s1', chunk('old'), { replay: true }),
    promptRequest('go'),
    of('s1', chunk('new')),
  );
  expect(summarize(view)).toEqual(['- go', '- <explorer>', 's1 new']);
});

test('terminals of different sessions are separate, even if their ids are the same', () => {
  const unknown = 'x'.repeat(300);
  const run = call('c', { content: [{ type: 'terminal', terminalId: 't1' }] });
  const terminal = (command: string) => ({
    ...{ sessionUpdate: 'terminal_update', terminalId: 't1', command },
    ...{ output: { data: btoa(`output of ${command}`) }, exitStatus: { exitCode: 0 } },
  });
  const ofUnknown = (fields: Fields) =>
    fromAgent(
      { method: 'session/update', params: { sessionId: unknown, update: fields } },
      { subagent: unknown.slice(0, 256), unknown_session: true },
    );
  const view = viewOf(
    update(run),
    update(announce('s1')),
    update(announce('s2')),
    of('s1', run),
    of('s2', run),
    update(terminal('make')),
    of('s1', terminal('ls')),
    of('s2', { sessionUpdate: 'terminal_output_chunk', terminalId: 't1', data: btoa('partial') }),
    ofUnknown(terminal('rm')),
    ofUnknown({ sessionUpdate: 'tool_call_update', toolCallId: 'c', title: 'replaced' }),
  );
  const shown = itemsOf(view, 'tool').map((item) => [item.subagent, item.call.title, item.call.content]);
  const ended = (command: string) => ({ command, text: `output of ${command}`, exit: 'exit code 0' });
  expect(shown).toMatchObject([
    [null, 'c', [{ terminal_id: 't1', ...ended('make') }]],
    ['s1', 'c', [{ terminal_id: 't1', ...ended('ls') }]],
    ['s2', 'c', [{ terminal_id: 't1', command: null, text: 'partial', exit: null }]],
    [unknown.slice(0, 256), 'replaced', []],
  ]);
});
