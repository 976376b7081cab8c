import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { oddFrames } from '../../testing/acp-scenarios.ts';
import { Driven } from '../../tools/demo-agent/testing.ts';
import { asRecord, type Fields } from '../json.ts';
import { bounds } from './bounds.ts';
import type { Item } from './items.ts';
import { bodyText } from './parts.ts';
import {
  agentMessage,
  agentThought,
  cancelNotification,
  errorEvent,
  fromAgent,
  itemsOf,
  numbered,
  options,
  outputEvent,
  permissionRequest,
  permissionResponse,
  promptRequest,
  promptResponse,
  response,
  sendRequest,
  statusEvent,
  toAgent,
  toolCall,
  toolCallUpdate,
  update,
  viewOf,
} from './testing.ts';
import { Transcript, type View } from './transcript.ts';

/** A short text for each item. */
function summarize({ items }: View): string[] {
  return items.map(word);
}

function word(item: Item): string {
  if ('body' in item) return `${item.kind} ${bodyText(item.body)}`;
  if (item.kind === 'tool') return `tool ${item.call.title} ${item.status}`;
  return item.kind;
}

describe('messages', () => {
  test('joins the chunks of a message into one item, which ends when another item starts', () => {
    const view = viewOf(
      promptRequest('go'),
      agentThought('hm'),
      agentThought('m'),
      agentMessage('I '),
      agentMessage('will'),
      toolCall('c1'),
    );
    expect(summarize(view)).toEqual([
      'user_message go',
      'thought hmm',
      'agent_message I will',
      'tool c1 pending',
    ]);
    expect(view.items[1]).toMatchObject({ ts: 2, ended_ts: 4, turn: 1, seq: 2 });
    expect(view.items[2]).toMatchObject({ ts: 4, ended_ts: 6 });
  });

  test('keeps interleaved messages with different ids separate and unsplit', () => {
    const [one, two] = [{ messageId: '1' }, { messageId: '2' }];
    const view = viewOf(
      agentMessage('a', one),
      agentMessage('x', two),
      agentMessage('b', one),
      agentMessage('y', two),
      agentMessage('without'),
    );
    expect(summarize(view)).toEqual(['agent_message ab', 'agent_message xy', 'agent_message without']);
  });

  test('starts a new item for text after a tool call, whatever its message id', () => {
    const id = { messageId: '1' };
    const view = viewOf(agentMessage('before', id), toolCall('c1'), agentMessage('after', id));
    expect(summarize(view)).toEqual(['agent_message before', 'tool c1 pending', 'agent_message after']);
  });

  test('an update of an existing tool call does not split a message', () => {
    const view = viewOf(
      toolCall('c1'),
      agentMessage('one '),
      toolCallUpdate('c1', { status: 'completed' }),
      agentMessage('two'),
    );
    expect(summarize(view)).toEqual(['tool c1 completed', 'agent_message one two']);
  });

  test('output outside the protocol is one item, and does not split a message', () => {
    const view = viewOf(
      agentMessage('one '),
      outputEvent('a\nb\n'),
      outputEvent('c\n'),
      agentMessage('two'),
      outputEvent('d\n'),
    );
    expect(summarize(view)).toEqual(['agent_message one two', 'output']);
    expect(view.items[1]).toMatchObject({ text: 'a\nb\nc\nd\n', lines: 4 });
  });

  test('stderr appears as output only', () => {
    expect(viewOf(outputEvent('warning\n', { stream: 'stderr' })).items).toEqual([]);
  });

  test('a prompt keeps its images, links and files', () => {
    const prompt = [
      { type: 'text', text: 'see ' },
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'resource_link', uri: 'file:///a', name: 'a', size: 3 },
      { type: 'resource', resource: { uri: 'file:///b', text: 'inside' } },
      { type: 'made_up', x: 1 },
    ];
    const [item] = itemsOf(viewOf(sendRequest('session/prompt', { prompt })), 'user_message');
    expect(item?.body.parts).toEqual([
      { type: 'text', text: 'see ' },
      { type: 'image', mime_type: 'image/png', data: 'AAAA', uri: null },
      { type: 'link', uri: 'file:///a', name: 'a', title: null, mime_type: null, size: 3 },
      { type: 'resource', uri: 'file:///b', mime_type: null, text: 'inside' },
      {
        type: 'unknown',
        raw: { value: { type: 'made_up', x: 1 }, truncated: false, chars: expect.any(Number) },
      },
    ]);
  });

  test('hides the agent’s echo of a prompt, but shows other user messages', () => {
    const echo = (text: string) =>
      update({ sessionUpdate: 'user_message_chunk', content: { type: 'text', text } });
    const view = viewOf(
      promptRequest('fix the test'),
      echo('fix '),
      echo('the test'),
      echo('a reminder'),
      echo(' of it'),
    );
    expect(summarize(view)).toEqual(['user_message fix the test', 'user_message a reminder of it']);
    expect(view.items[1]).toMatchObject({ prompt_id: null });
  });

  test('hides replayed items, but applies their settings', () => {
    const replay = { replay: true };
    const view = viewOf(
      agentMessage('once'),
      agentMessage('once', {}, replay),
      update({ sessionUpdate: 'session_info_update', title: 'T' }, replay),
    );
    expect(summarize(view)).toEqual(['agent_message once']);
    expect(view.title).toBe('T');
  });

  test('truncates a long text, and records how much was omitted', () => {
    const chunk = 'x'.repeat(bounds.text_chars / 2 + 10);
    const [item] = itemsOf(
      viewOf(agentMessage(chunk), agentMessage(chunk), agentMessage('more')),
      'agent_message',
    );
    expect(item?.body.text_chars).toBe(bounds.text_chars);
    expect(item?.body.omitted_chars).toBe(24);
  });

  test('shows a placeholder for a message that is too large for an event', () => {
    const view = viewOf(
      sendRequest('session/prompt'),
      fromAgent(null, { method: 'session/update', truncated: true, size: 2_000_000 }),
      toAgent(
        { payload: null },
        { payload: null, method: 'session/prompt', truncated: true, size: 3_000_000 },
      ),
    );
    expect(view.items[1]).toMatchObject({ kind: 'unknown', label: 'session/update', too_large: 2_000_000 });
    expect(view.items[2]).toMatchObject({ kind: 'user_message', too_large: 3_000_000 });
  });
});

describe('turns', () => {
  test('a turn lasts from its prompt to its stop, and has the agent’s stop reason', () => {
    const view = viewOf(
      promptRequest('one'),
      agentMessage('a'),
      promptResponse('max_tokens'),
      promptRequest('two', 'prm_2'),
    );
    expect(view.turns).toEqual([
      {
        n: 1,
        prompt_id: 'prm_1',
        prompt_seq: 1,
        started_ts: 1,
        ended_ts: 3,
        stop_reason: 'max_tokens',
        cancelled_ts: null,
      },
      expect.objectContaining({ n: 2, prompt_id: 'prm_2', ended_ts: null }),
    ]);
    expect(itemsOf(view, 'stop')).toEqual([
      {
        kind: 'stop',
        key: '3',
        seq: 3,
        ts: 3,
        turn: 1,
        subagent: null,
        reason: 'max_tokens',
        seconds: 2,
        tools: 0,
        added: 0,
        removed: 0,
        tokens: null,
      },
    ]);
    expect(view.working).toBe(true);
  });

  test('the end of a turn counts its tool calls, the changes of completed ones, and its tokens', () => {
    const usage = (used: number) => update({ sessionUpdate: 'usage_update', used, size: 1000 });
    const diff = (oldText: string, newText: string) => ({
      content: [{ type: 'diff', path: 'a.txt', oldText, newText }],
    });
    const view = viewOf(
      promptRequest('one', 'prm_1'),
      toolCall('c1', { status: 'completed', ...diff('a\n', 'b\nc\n') }),
      toolCall('c2', { status: 'failed', ...diff('a\n', 'b\n') }),
      usage(40),
      promptResponse('end_turn', 'prm_1'),
      promptRequest('two', 'prm_2'),
      usage(100),
      promptResponse('end_turn', 'prm_2'),
      promptRequest('three', 'prm_3'),
      response({ result: { stopReason: 'end_turn', usage: { totalTokens: 7 } } }, 'prm_3'),
    );
    expect(
      itemsOf(view, 'stop').map(({ tools, added, removed, tokens }) => [tools, added, removed, tokens]),
    ).toEqual([
      [2, 2, 1, 40],
      [0, 0, 0, 60],
      [0, 0, 0, 7],
    ]);
  });

  test('the tokens of a turn do not include those from before it', () => {
    const tokensOf = (first: number, ...openings: string[]) => {
      const transcript = new Transcript();
      const events = openings.flatMap((method, at) => [
        ...[sendRequest(method, {}, 'open'), promptRequest('go')],
        update({ sessionUpdate: 'usage_update', used: 40 + at * 20, size: 1000 }),
        promptResponse('end_turn'),
      ]);
      const records = numbered(events, first);
      transcript.append(
        records.map((event, at) => ({ ...event, session_id: `ses_${Math.floor(at / 4)}` }) as typeof event),
      );
      return itemsOf(transcript.view, 'stop').map(({ tokens }) => tokens);
    };
    expect(tokensOf(1, 'session/new', 'session/load', 'session/resume')).toEqual([40, 20, 20]);
    expect(tokensOf(1, 'session/new', 'session/new')).toEqual([40, 60]);
    // What was there before is unknown.
    expect(tokensOf(1, 'session/load', 'session/load')).toEqual([null, 20]);
    expect(tokensOf(9, 'session/load')).toEqual([null]);
  });

  test('a cancelled turn is stopping until the agent confirms it', () => {
    expect(viewOf(promptRequest('one'), cancelNotification())).toMatchObject({
      working: true,
      stopping: true,
    });
    const after = viewOf(promptRequest('one'), cancelNotification(), promptResponse('cancelled'));
    expect(after).toMatchObject({ working: false, stopping: false });
    expect(after.turns[0]).toMatchObject({ cancelled_ts: 2, stop_reason: 'cancelled' });
  });

  test('a failed prompt ends its turn, with the reason in a notice', () => {
    const view = viewOf(
      promptRequest('one'),
      response({ error: { code: -32603, message: 'no' } }),
      errorEvent('prompt_failed', { prompt_id: 'prm_1' }),
    );
    expect(summarize(view)).toEqual(['user_message one', 'notice']);
    expect(view.working).toBe(false);
    expect(view.items[1]).toMatchObject({
      code: 'prompt_failed',
      text: 'prompt_failed happened',
      details: { value: { prompt_id: 'prm_1' } },
    });
  });

  test('a failed prompt that is too large for an event ends its turn', () => {
    const about = { method: 'session/prompt', truncated: true, size: 3_000_000 };
    const failure = response({ error: { code: -32603, message: 'no' } });
    const view = viewOf(toAgent(null, { ...about, request_id: 'prm_1' }), toolCall('c1'), failure);
    expect(view).toMatchObject({ working: false, turns: [{ prompt_id: 'prm_1', ended_ts: 3 }] });
    expect(itemsOf(view, 'tool')[0]!.status).toBe('unfinished');
    // Earlier versions did not record the id of the request.
    const failed = errorEvent('prompt_failed', { prompt_id: 'prm_1' });
    expect(viewOf(toAgent(null, about), toolCall('c1'), failure, failed)).toMatchObject({
      working: false,
      turns: [{ ended_ts: 4 }],
    });
  });

  test('the end of the process ends the turn, its tool calls and pending requests', () => {
    const view = viewOf(
      promptRequest('one'),
      toolCall('c1'),
      permissionRequest('rev_1'),
      statusEvent('failed', { exit_code: 137, reason: 'exit_code' }),
    );
    expect(summarize(view)).toEqual(['user_message one', 'tool c1 unfinished', 'permission', 'status']);
    expect(itemsOf(view, 'permission')[0]).toMatchObject({ outcome: { type: 'gone' }, settled_ts: 4 });
    expect(view.items[3]).toMatchObject({ status: 'failed', exit_code: 137, reason: 'exit_code' });
    expect(view.working).toBe(false);
  });

  test('a new session ends everything that the previous one left open', () => {
    const transcript = new Transcript();
    transcript.append(
      numbered([promptRequest('one'), toolCall('c1'), { ...agentMessage('new'), session_id: 'ses_2' }]),
    );
    expect(transcript.view.sessions).toEqual([
      { session_id: 'ses_1', first_seq: 1, started_ts: 1 },
      { session_id: 'ses_2', first_seq: 3, started_ts: 3 },
    ]);
    expect(summarize(transcript.view)).toContain('tool c1 unfinished');
    expect(transcript.view.working).toBe(false);
  });

  test('an error about an earlier session does not end the turn of the newer one', () => {
    const of_second = { session_id: 'ses_2' };
    const transcript = new Transcript();
    transcript.append(
      numbered([
        promptRequest('one'),
        { ...promptRequest('two'), ...of_second },
        errorEvent('turn_lost', { prompt_id: 'prm_1' }),
        { ...toolCall('c1'), ...of_second },
      ]),
    );
    expect(transcript.view.sessions.map(({ session_id }) => session_id)).toEqual(['ses_1', 'ses_2']);
    expect(transcript.view.working).toBe(true);
    expect(summarize(transcript.view).at(-1)).toBe('tool c1 pending');
  });

  test('shows the end of a turn whose start is missing from the log', () => {
    const view = viewOf(agentMessage('last words'), promptResponse('end_turn'));
    expect(summarize(view)).toEqual(['agent_message last words', 'stop']);
    expect(view.items[1]).toMatchObject({ reason: 'end_turn', seconds: null });
  });
});

describe('tools', () => {
  test('a tool call is one row, and an update changes only the fields that it contains', () => {
    const view = viewOf(
      toolCall('c1', { kind: 'edit', locations: [{ path: '/a', line: 3 }], rawInput: { x: 1 } }),
      toolCallUpdate('c1', { status: 'in_progress', title: 'Edit a' }),
      toolCallUpdate('c1', { status: 'completed', title: null, rawOutput: 'done' }),
    );
    expect(view.items).toHaveLength(1);
    expect(itemsOf(view, 'tool')[0]).toMatchObject({
      status: 'completed',
      ts: 1,
      ended_ts: 3,
      call: {
        title: 'Edit a',
        tool_kind: 'edit',
        locations: [{ path: '/a', line: 3 }],
        raw_input: { value: { x: 1 } },
        raw_output: { value: 'done' },
      },
    });
  });

  test('an update of an unknown tool adds a row', () => {
    expect(summarize(viewOf(toolCallUpdate('c9', { status: 'completed' })))).toEqual(['tool c9 completed']);
  });

  test('a tool call that restarts after its end gets another row', () => {
    const view = viewOf(
      toolCall('c1'),
      toolCallUpdate('c1', { status: 'failed' }),
      toolCall('c1'),
      toolCall('c1'),
    );
    expect(summarize(view)).toEqual(['tool c1 failed', 'tool c1 pending']);
  });

  test('counts a diff’s added and removed lines, and reuses the object of a repeated diff', () => {
    const content = [{ type: 'diff', path: '/a', oldText: 'one\ntwo\n', newText: 'one\r\n2\nthree' }];
    const before = viewOf(toolCall('c1', { content }));
    const after = viewOf(toolCall('c1', { content }), toolCallUpdate('c1', { status: 'completed', content }));
    expect(itemsOf(before, 'tool')[0]).toMatchObject({ added: 2, removed: 1 });
    expect(itemsOf(after, 'tool')[0]).toMatchObject({ added: 2, removed: 1 });
    const transcript = new Transcript();
    transcript.append(numbered([toolCall('c1', { content })]));
    const [first] = itemsOf(transcript.view, 'tool');
    transcript.append(numbered([toolCallUpdate('c1', { content: structuredClone(content) })], 2));
    expect(itemsOf(transcript.view, 'tool')[0]?.call.content[0]).toBe(first?.call.content[0]);
  });

  test('content is text, a diff or a terminal; any other content is kept unchanged', () => {
    const content = [
      { type: 'content', content: { type: 'text', text: 'out' } },
      { type: 'terminal', terminalId: 't1' },
      { type: 'diff', path: '/new', newText: 'a\nb\n' },
      { type: 'made_up' },
    ];
    expect(itemsOf(viewOf(toolCall('c1', { content })), 'tool')[0]?.call.content).toMatchObject([
      { type: 'content', part: { type: 'text', text: 'out' } },
      { type: 'terminal', terminal_id: 't1' },
      { type: 'diff', path: '/new', old: null, added: 2, removed: 0 },
      { type: 'unknown', raw: { value: { type: 'made_up' } } },
    ]);
  });

  test('a cancel marks unfinished tool calls at once, and a later result still applies', () => {
    const cancelled = [
      promptRequest('go'),
      toolCall('c1'),
      toolCall('c2'),
      toolCallUpdate('c2', { status: 'completed' }),
      cancelNotification(),
    ];
    expect(summarize(viewOf(...cancelled)).slice(1)).toEqual(['tool c1 cancelled', 'tool c2 completed']);
    const busy = viewOf(...cancelled, toolCallUpdate('c1', { status: 'in_progress', title: 'still here' }));
    expect(summarize(busy)[1]).toBe('tool still here cancelled');
    const late = viewOf(
      ...cancelled,
      promptResponse('cancelled'),
      toolCallUpdate('c1', { status: 'failed' }),
    );
    expect(summarize(late)[1]).toBe('tool c1 failed');
  });

  test('a tool call without a result is unfinished once its turn is over', () => {
    const view = viewOf(
      promptRequest('go'),
      toolCall('c1', { status: 'in_progress' }),
      promptResponse('end_turn'),
    );
    expect(itemsOf(view, 'tool')[0]).toMatchObject({ status: 'unfinished', ended_ts: 3 });
  });
});

describe('permission requests', () => {
  const call = {
    toolCallId: 'c1',
    title: 'npm publish',
    kind: 'execute',
    rawInput: { command: 'npm publish' },
  };

  test('keeps the agent’s options in order, whatever their kind', () => {
    const [request] = itemsOf(viewOf(permissionRequest('rev_1', call)), 'permission');
    expect(request).toMatchObject({
      review_id: 'rev_1',
      outcome: null,
      call: { title: 'npm publish', tool_kind: 'execute', raw_input: { value: { command: 'npm publish' } } },
      options: options.map(({ optionId, name, kind }) => ({ option_id: optionId, name, kind })),
    });
  });

  test('a request takes missing details from its tool call', () => {
    const view = viewOf(toolCall('c1', { title: 'Edit', kind: 'edit' }), permissionRequest('rev_1'));
    expect(itemsOf(view, 'permission')[0]?.call).toMatchObject({ title: 'Edit', tool_kind: 'edit' });
  });

  test('an answer has the option, the user who chose it, and the time', () => {
    const view = viewOf(
      permissionRequest('rev_1'),
      permissionResponse('rev_1', { outcome: 'selected', optionId: 'y' }),
    );
    expect(itemsOf(view, 'permission')[0]).toMatchObject({
      outcome: { type: 'selected', option_id: 'y', option: { name: 'Yes, do it' } },
      answered_by: 'ana',
      settled_ts: 2,
    });
  });

  test('a request can be cancelled by an answer, or withdrawn by the agent', () => {
    const cancelled = viewOf(
      permissionRequest('rev_1'),
      permissionResponse('rev_1', { outcome: 'cancelled' }, null),
    );
    expect(itemsOf(cancelled, 'permission')[0]).toMatchObject({
      outcome: { type: 'cancelled' },
      answered_by: null,
    });
    const withdrawn = viewOf(
      permissionRequest('rev_1'),
      fromAgent({ method: '$/cancel_request', params: { requestId: 7 } }),
    );
    expect(itemsOf(withdrawn, 'permission')[0]?.outcome).toEqual({ type: 'withdrawn' });
  });

  test('marks an answer that did not reach the agent', () => {
    const view = viewOf(
      permissionRequest('rev_1'),
      permissionResponse('rev_1', { outcome: 'selected', optionId: 'y' }),
      errorEvent('review_undeliverable', { review_id: 'rev_1' }),
    );
    expect(itemsOf(view, 'permission')[0]).toMatchObject({ undeliverable: true });
  });

  test('a request that is too large for an event can still be answered through its review', () => {
    const large = fromAgent(null, {
      method: 'session/request_permission',
      review_id: 'rev_1',
      request_id: 7,
      truncated: true,
      size: 5_000_000,
    });
    expect(itemsOf(viewOf(large), 'permission')[0]).toMatchObject({
      review_id: 'rev_1',
      too_large: 5_000_000,
    });
    const withdrawal = fromAgent({ method: '$/cancel_request', params: { requestId: 7 } });
    expect(itemsOf(viewOf(large, withdrawal), 'permission')[0]!.outcome).toEqual({ type: 'withdrawn' });
  });
});

describe('agent settings', () => {
  test('shows the latest plan and its progress', () => {
    const plan = (...states: string[]) =>
      update({ sessionUpdate: 'plan', entries: states.map((status) => ({ content: 'x', status })) });
    const view = viewOf(plan('pending'), plan('completed', 'in_progress', 'pending'));
    expect(view.plan).toMatchObject({ done: 1, total: 3 });
    expect(view.items).toEqual([]);
  });

  test('a new session has no plan and no usage yet, but the settings of the one before', () => {
    const transcript = new Transcript();
    transcript.append(
      numbered([
        update({ sessionUpdate: 'plan', entries: [{ content: 'x', status: 'pending' }] }),
        update({ sessionUpdate: 'usage_update', used: 90, size: 100 }),
        update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'test' }] }),
        statusEvent('failed'),
      ]),
    );
    expect(transcript.view).toMatchObject({ plan: { total: 1 }, usage: { used: 90 } });
    transcript.append(numbered([statusEvent('running', { session_id: 'ses_2' })], 5));
    expect(transcript.view).toMatchObject({ plan: null, usage: null, commands: [{ name: 'test' }] });
  });

  test('modes, options, commands, usage and title have the latest reported values', () => {
    const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask', name: 'Ask' }, 'no mode'] };
    const option = { id: 'model', name: 'Model', type: 'select', currentValue: 'big', options: [] };
    const view = viewOf(
      sendRequest('session/new', {}, 'r1'),
      response({ result: { sessionId: 's', modes, configOptions: [option] } }, 'r1'),
      sendRequest('session/set_mode', { modeId: 'auto' }, 'r2'),
      response({ result: {} }, 'r2'),
      update({ sessionUpdate: 'available_commands_update', availableCommands: [{ name: 'test' }, {}] }),
      update({ sessionUpdate: 'usage_update', used: 1, size: 10, cost: { amount: 0.4, currency: 'USD' } }),
      update({ sessionUpdate: 'session_info_update', title: 'Flaky test' }),
    );
    expect(view).toMatchObject({
      modes: { currentModeId: 'auto', availableModes: [{ id: 'ask', name: 'Ask' }] },
      config_options: [option],
      commands: [{ name: 'test' }],
      usage: { used: 1, size: 10, cost: { amount: 0.4, currency: 'USD' } },
      title: 'Flaky test',
    });
    expect(view.items).toEqual([]);
  });

  test('a setting that the agent rejects becomes a notice', () => {
    const view = viewOf(
      sendRequest('session/set_mode', { modeId: 'auto' }, 'r2'),
      response({ error: { code: 1, message: 'not now' } }, 'r2'),
    );
    expect(view.items).toMatchObject([{ kind: 'notice', code: 'refused', text: 'not now' }]);
    expect(view.modes).toBeNull();
  });
});

describe('elicitations', () => {
  test('are items with the id of their record; their completion adds no item', () => {
    const create = { id: 1, method: 'elicitation/create', params: { mode: 'url' } };
    const view = viewOf(
      agentMessage('one'),
      fromAgent(create, { elicitation_id: 'eli_1' }),
      fromAgent({ method: 'elicitation/complete', params: { elicitationId: 'e' } }),
      agentMessage('two'),
    );
    expect(view.items.map(({ kind }) => kind)).toEqual(['agent_message', 'elicitation', 'agent_message']);
    expect(itemsOf(view, 'elicitation')).toMatchObject([{ elicitation_id: 'eli_1' }]);
  });
});

describe('unknown messages', () => {
  test('shows an unknown update, notification or request in full, collapsed', () => {
    const view = viewOf(
      update({ sessionUpdate: 'made_up_update', anything: [1] }),
      fromAgent({ method: '_made_up/notification', params: { x: 1 } }),
      fromAgent({ id: 1, method: 'elicitation/create', params: { mode: 'form' } }),
    );
    expect(view.items).toMatchObject([
      { kind: 'unknown', label: 'made_up_update', raw: { value: { anything: [1] } } },
      { kind: 'unknown', label: '_made_up/notification', raw: { value: { x: 1 } } },
      { kind: 'unknown', label: 'elicitation/create', raw: { value: { mode: 'form' } } },
    ]);
  });

  test('truncates a large unknown value', () => {
    const huge = { sessionUpdate: 'made_up', text: 'x'.repeat(bounds.text_chars + 1) };
    const [item] = itemsOf(viewOf(update(huge)), 'unknown');
    expect(item?.raw.truncated).toBe(true);
    expect(String(item?.raw.value)).toHaveLength(bounds.text_chars);
  });
});

test('shows frames that a parse and serialize round trip would change', () => {
  const view = viewOf(...oddFrames('s').map((frame) => fromAgent(JSON.parse(frame))));
  expect(summarize(view)).toEqual(['agent_message integerswritingkeyscafé 😀 / A \0 \ud800']);
});

describe('streaming', () => {
  test('ignores a repeated event', () => {
    const transcript = new Transcript();
    const events = numbered([agentMessage('a'), agentMessage('b')]);
    transcript.append(events);
    const { view } = transcript;
    transcript.append(events);
    expect(transcript.view).toBe(view);
  });

  test('says whether the log has events before the first one, unless an error reports that they are gone', () => {
    const begunBefore = (first: number, ...events: Fields[]) => {
      const transcript = new Transcript();
      transcript.append(numbered(events, first));
      return transcript.view.began_before;
    };
    expect(begunBefore(1, agentMessage('a'), agentMessage('b'))).toBe(false);
    expect(begunBefore(7, agentMessage('a'), agentMessage('b'))).toBe(true);
    expect(begunBefore(7, errorEvent('prompt_failed'))).toBe(true);
    expect(begunBefore(7, errorEvent('events_truncated', { first_available: 8 }))).toBe(false);
    expect(begunBefore(7, errorEvent('log_gap', { from: 1, to: 6 }))).toBe(false);
    expect(begunBefore(7, errorEvent('log_gap', { from: 3, to: 6 }))).toBe(true);
  });

  test('continues at the head of the log after a reset, with unique keys', () => {
    const transcript = new Transcript();
    transcript.append(numbered([agentMessage('a'), toolCall('c1'), agentMessage('b')]));
    transcript.append(numbered([{ ...errorEvent('reset', { head: 1 }), session_id: null }]));
    transcript.append(numbered([toolCall('c2'), agentMessage('c')], 2));
    expect(summarize(transcript.view).slice(-3)).toEqual(['notice', 'tool c2 pending', 'agent_message c']);
    expect(transcript.view.last_seq).toBe(3);
    const keys = transcript.view.items.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test('a view is immutable, and shares unchanged items with the previous view', () => {
    const transcript = new Transcript();
    transcript.append(
      numbered([promptRequest('go'), agentMessage('one'), toolCall('c1'), agentMessage('two')]),
    );
    const before = transcript.view;
    const copy = structuredClone(before);
    transcript.append(numbered([agentMessage('three'), toolCallUpdate('c1', { status: 'completed' })], 5));
    expect(before).toEqual(copy);
    const after = transcript.view;
    expect(after.items[0]).toBe(before.items[0]);
    expect(after.items[1]).toBe(before.items[1]);
    expect(after.items[3]).not.toBe(before.items[3]);
  });

  test('keeps a bounded number of the newest items, whose tool calls can still change', () => {
    const transcript = new Transcript();
    const many = Array.from({ length: bounds.items + 10 }, (_, at) => toolCall(`c${at}`));
    transcript.append(numbered(many));
    transcript.append(numbered([toolCallUpdate('c0', { title: 'too late' })], many.length + 1));
    transcript.append(numbered([toolCallUpdate(`c${many.length - 1}`, { title: 'last' })], many.length + 2));
    const { items, left_out } = transcript.view;
    expect(items.length).toBeLessThanOrEqual(bounds.items);
    expect(items.length + left_out).toBe(many.length + 1);
    expect(items.at(-2)).toMatchObject({ call: { title: 'last' } });
  });
});

describe('the demo agent', () => {
  let dir: string;
  let demo: Driven;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-transcript-'));
    demo = new Driven({ state_dir: join(dir, 'state') });
  });

  afterEach(async () => {
    await demo.close();
    await rm(dir, { recursive: true });
  });

  /** What it wrote, with what it was asked and answered. */
  function events(): Fields[] {
    const frames = demo.output
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Fields);
    const end = frames.find(({ result }) => 'stopReason' in asRecord(result))!;
    return [
      promptRequest('Fix the flaky test', end.id),
      ...frames.flatMap((frame) =>
        frame.method === 'session/request_permission'
          ? [
              fromAgent(frame, { review_id: 'rev_1' }),
              permissionResponse('rev_1', { outcome: 'selected', optionId: 'demo-once' }),
            ]
          : [fromAgent(frame)],
      ),
    ];
  }

  test('its turn has a message, a thought, a plan, tool calls with a diff, an answered request and a stop', async () => {
    await demo.prompt(await demo.open(dir), 'Fix the flaky test');
    const view = viewOf(...events());
    expect(view.items.map(({ kind }) => kind)).toEqual([
      'user_message',
      'agent_message',
      'thought',
      'tool',
      'tool',
      'permission',
      'agent_message',
      'stop',
    ]);
    expect(bodyText(itemsOf(view, 'agent_message')[0]!.body)).toContain('Fix the flaky test');
    expect(itemsOf(view, 'tool').map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(itemsOf(view, 'tool')[1]?.added).toBeGreaterThan(0);
    expect(itemsOf(view, 'permission')[0]?.outcome).toMatchObject({
      type: 'selected',
      option_id: 'demo-once',
    });
    expect(view.plan?.done).toBe(view.plan?.total);
    expect(view.usage?.size).toBeGreaterThan(0);
    expect(view.commands.length).toBeGreaterThan(0);
    expect(view.working).toBe(false);
  });
});
