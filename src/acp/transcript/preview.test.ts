/** Conversations in ACP version 2. */
import { expect, test } from 'vitest';
import { bounds } from './bounds.ts';
import { bodyText } from './parts.ts';
import {
  agentMessage,
  fromAgent,
  itemsOf,
  options,
  permissionResponse,
  promptRequest,
  response,
  sendRequest,
  toolCallUpdate,
  update,
  viewOf,
} from './testing.ts';

const block = (text: string) => ({ type: 'text', text });
const message = (messageId: string, ...texts: string[]) =>
  update({ sessionUpdate: 'agent_message', messageId, content: texts.map(block) });
const accepts = () => response({ result: { messageId: 'u' } });
const taken = () => ({ ...accepts(), accepted: true });
const rests = (stopReason = 'end_turn', more = {}) =>
  update(
    { sessionUpdate: 'state_update', state: 'idle', stopReason, ...more },
    { turn_ended: { prompt_id: 'prm_1', stop_reason: stopReason } },
  );
const texts = (...events: Parameters<typeof viewOf>) =>
  itemsOf(viewOf(...events), 'agent_message').map(({ body }) => bodyText(body));

test('a turn continues when its prompt is accepted, and ends with the idle state', () => {
  const before = viewOf(promptRequest('go'), taken(), agentMessage('Hm', { messageId: 'm' }));
  expect(before).toMatchObject({ working: true, turns: [{ ended_ts: null }] });
  const after = viewOf(promptRequest('go'), taken(), agentMessage('Hm', { messageId: 'm' }), rests());
  expect(after).toMatchObject({ working: false, turns: [{ ended_ts: 4, stop_reason: 'end_turn' }] });
  expect(itemsOf(after, 'stop')).toMatchObject([{ reason: 'end_turn', seconds: 3 }]);
  expect(itemsOf(after, 'unknown')).toEqual([]);
});

test('a turn may end with the answer to its prompt, or with an error', () => {
  const late = { ...accepts(), turn_ended: { prompt_id: 'prm_1', stop_reason: 'refusal' } };
  expect(itemsOf(viewOf(promptRequest('go'), late), 'stop')).toMatchObject([{ reason: 'refusal' }]);
  const refused = response({ error: { code: 1, message: 'no' } });
  const failed = [
    { ...refused, turn_ended: { prompt_id: 'prm_1', stop_reason: null } },
    rests('error', { error: { code: 1, message: 'no' } }),
  ];
  for (const event of failed) {
    const view = viewOf(promptRequest('go'), event);
    expect(view.working).toBe(false);
    expect(itemsOf(view, 'stop')).toEqual([]);
  }
});

test('a complete message replaces its chunks, and more chunks can follow', () => {
  expect(texts(message('m', 'One', ' two'))).toEqual(['One two']);
  const changed = [
    agentMessage('On', { messageId: 'm' }),
    message('m', 'One'),
    agentMessage(' more', { messageId: 'm' }),
  ];
  expect(texts(...changed)).toEqual(['One more']);
  const parted = [
    agentMessage('A', { messageId: 'm' }),
    toolCallUpdate('c', { title: 'c' }),
    agentMessage('B', { messageId: 'm' }),
  ];
  expect(texts(...parted)).toEqual(['A', 'B']);
  expect(texts(...parted, message('m', 'C'))).toEqual(['C', '']);
  const same = update({ sessionUpdate: 'agent_message', messageId: 'm' });
  expect(texts(agentMessage('A', { messageId: 'm' }), same)).toEqual(['A']);
  expect(texts(update({ sessionUpdate: 'agent_message', messageId: 'm', content: null }))).toEqual([]);
  const view = viewOf(update({ sessionUpdate: 'agent_thought', messageId: 't', content: [block('Hm.')] }));
  expect(itemsOf(view, 'thought')).toHaveLength(1);
});

test('the agent’s echo of a prompt is not shown', () => {
  const echo = update({ sessionUpdate: 'user_message', messageId: 'u', content: [block('go')] });
  expect(itemsOf(viewOf(promptRequest('go'), echo), 'user_message')).toHaveLength(1);
  const other = update({ sessionUpdate: 'user_message', messageId: 'u', content: [block('other')] });
  expect(itemsOf(viewOf(promptRequest('go'), other), 'user_message')).toHaveLength(2);
});

test('content is added to a tool call, and a command shows its output', () => {
  const bytes = Buffer.from('größer\n');
  const chunk = (from: number, to?: number) =>
    update({
      sessionUpdate: 'terminal_output_chunk',
      terminalId: 't',
      data: bytes.subarray(from, to).toString('base64'),
    });
  const shows = { type: 'terminal', terminalId: 't' };
  const content = { type: 'content', content: block('Done.') };
  const view = viewOf(
    update({ sessionUpdate: 'terminal_update', terminalId: 't', command: 'cat' }),
    toolCallUpdate('c', { title: 'Run', kind: 'execute', status: 'in_progress', content: [shows] }),
    chunk(0, 3),
    chunk(3),
    update({ sessionUpdate: 'terminal_update', terminalId: 't', exitStatus: { exitCode: 1 } }),
    update({ sessionUpdate: 'tool_call_content_chunk', toolCallId: 'c', content: content }),
    update({ sessionUpdate: 'terminal_output_chunk', terminalId: 'nobody', data: 'eA==' }),
    toolCallUpdate('c', { status: 'cancelled' }),
  );
  const [tool, ...others] = itemsOf(view, 'tool');
  expect(others).toEqual([]);
  expect(tool).toMatchObject({ status: 'cancelled', call: { title: 'Run' } });
  expect(tool!.call.content).toEqual([
    {
      type: 'terminal',
      terminal_id: 't',
      command: 'cat',
      text: 'größer\n',
      omitted_chars: 0,
      exit: 'exit code 1',
    },
    { type: 'content', part: block('Done.') },
  ]);
  expect(view.items).toHaveLength(1);
});

test('keeps the end of long command output', () => {
  const data = btoa('x'.repeat(bounds.text_chars));
  const chunk = update({ sessionUpdate: 'terminal_output_chunk', terminalId: 't', data });
  const shows = toolCallUpdate('c', { content: [{ type: 'terminal', terminalId: 't' }] });
  const end = update({ sessionUpdate: 'terminal_output_chunk', terminalId: 't', data: btoa('end') });
  const [tool] = itemsOf(viewOf(shows, chunk, end), 'tool');
  const [terminal] = tool!.call.content;
  expect(terminal).toMatchObject({
    type: 'terminal',
    omitted_chars: 3,
    text: expect.stringMatching(/^x+end$/),
  });
});

test('a diff shows its patch, also in a permission request', () => {
  const patch = {
    format: 'git_patch',
    text: 'diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,1 +1,2 @@\n-one\n+two\n+three\n',
  };
  const diff = { type: 'diff', changes: [{ operation: 'modify', path: '/w/a' }], patch };
  const toolCall = { toolCallId: 'c', title: 'Edit', content: [diff] };
  const params = { title: 'Change it?', subject: { type: 'tool_call', toolCall }, options };
  const request = fromAgent({ id: 7, method: 'session/request_permission', params }, { review_id: 'rev_1' });
  const view = viewOf(
    promptRequest('go'),
    request,
    permissionResponse('rev_1', { outcome: 'selected', optionId: 'y' }),
  );
  const [permission] = itemsOf(view, 'permission');
  expect(permission).toMatchObject({
    outcome: { type: 'selected', option_id: 'y' },
    options: [{ option_id: 'y' }, {}],
  });
  expect(permission!.call).toMatchObject({
    title: 'Change it?',
    content: [
      { type: 'content', part: block('Edit') },
      { type: 'diff', path: '/w/a', old: 'one\n', new: 'two\nthree\n', added: 2, removed: 1 },
    ],
  });
});

test('settings are those of version 1, and the version is shown', () => {
  const option = { configId: 'how', name: 'Mode', type: 'select', currentValue: 'ask', options: [] };
  const commands = [{ type: 'command', name: 'plan', description: 'Plans' }];
  const info = { name: 'a', title: 'A', version: '1' };
  const view = viewOf(
    sendRequest('initialize', {}, 1),
    response({ result: { protocolVersion: 2, info } }, 1),
    sendRequest('session/new', {}, 2),
    response({ result: { configOptions: [option], availableCommands: commands } }, 2),
    update({
      sessionUpdate: 'plan_update',
      plan: { type: 'items', planId: 'p', entries: [{ content: 'one' }] },
    }),
    sendRequest('auth/login', {}, 3),
    response({ error: { code: 1, message: 'wrong key' } }, 3),
  );
  expect(view).toMatchObject({ protocol_version: 2, agent: info, commands, plan: { total: 1 } });
  expect(view.config_options).toMatchObject([{ id: 'how', currentValue: 'ask' }]);
  expect(itemsOf(view, 'notice')).toMatchObject([{ code: 'refused', text: 'wrong key' }]);
});

test('shows unknown updates unchanged', () => {
  const view = viewOf(update({ sessionUpdate: '_weather', sky: 'grey' }));
  expect(itemsOf(view, 'unknown')).toMatchObject([{ label: '_weather', raw: { value: { sky: 'grey' } } }]);
});
